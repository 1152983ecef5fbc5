"""Patches as they were posted (mails, threads, folders, git ranges), and what they ask of a
kernel."""

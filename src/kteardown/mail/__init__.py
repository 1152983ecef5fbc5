"""Patches as they are posted: mails, mailboxes, threads, folders, git ranges."""

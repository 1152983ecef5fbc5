"""Write a series as mails that a person can send. Nothing is sent."""

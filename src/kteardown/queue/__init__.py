"""Series that wait to be tried: the queue, what a check of a mail program prints, and new mails of
a list."""

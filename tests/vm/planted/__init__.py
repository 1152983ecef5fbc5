"""Problems that are planted in a guest: objects of one kind whose number is known, and their
release.

``guest.py`` boots a kernel with them. The other modules run in the guest, on the Python of this
host, with its standard library only.
"""

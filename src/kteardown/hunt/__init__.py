"""Which kinds of kernel objects cost more for each object, the more of them there are."""

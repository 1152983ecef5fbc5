"""kteardown: evidence about changes to the paths on which Linux tears things down."""

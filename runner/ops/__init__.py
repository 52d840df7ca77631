"""One torch implementation of each op kind; one file each, found by ``registry``."""

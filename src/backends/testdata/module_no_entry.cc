// A library with another symbol than the one of a backend.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }

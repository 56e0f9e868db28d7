message(FATAL_ERROR "README.md has no block of C++: expected a whole program between ```cpp and ```")

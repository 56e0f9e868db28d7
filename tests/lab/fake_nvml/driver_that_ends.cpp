// A CUDA driver for a program that must not load one: loading it ends the program.

#include <cstdlib>

namespace {

struct EndsTheProgram {
    EndsTheProgram() { std::_Exit(99); }
} ends_the_program;

}  // namespace

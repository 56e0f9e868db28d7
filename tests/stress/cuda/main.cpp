// The allocators over CUDA's driver, where the program uses the driver beside them. Every block is
// filled in the order of its streams and verified by copying it back.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "stress/cuda/card.hpp"
#include "stress/cuda/other_process.hpp"

namespace {

int shared_from = -1;  // a socket: this is the other process of a test

/// Returns false if an argument is unknown.
bool read_command_line(int count, char** arguments) {
    auto& line = tensorpool::stress::cuda::command_line();
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--quick") {
            line.quick = true;
        } else if (argument == "--library" && i + 1 < count) {
            line.library = arguments[++i];
        } else if (argument == "--open" && i + 1 < count) {
            shared_from = std::atoi(arguments[++i]);
        } else {
            std::fprintf(stderr, "%s: '%s': expected [--library PATH] [--quick]\n", arguments[0],
                         arguments[i]);
            return false;
        }
    }
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    ::testing::InitGoogleTest(&count, arguments);
    if (!read_command_line(count, arguments)) return 2;
    if (shared_from >= 0) return tensorpool::stress::cuda::use_shared_block(shared_from);
    return RUN_ALL_TESTS();
}

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "models/fed_handles.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::testing::feed_handles({bytes, count});
    } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "handle_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "statistics/overwritten_segment_linux.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::testing::OverwrittenSegment({bytes, count}).run();
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "segment_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

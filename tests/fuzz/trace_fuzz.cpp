#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "tools/trace/fed_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::command::trace::testing::feed_trace(std::as_bytes(std::span(bytes, count)));
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "trace_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "plan/fed_plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::planned::testing::feed_plan(std::as_bytes(std::span(bytes, count)));
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "plan_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

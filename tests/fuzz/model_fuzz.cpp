#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "support/model_promises.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::testing::ModelPromises(std::as_bytes(std::span(bytes, count))).check();
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "model_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "pool/options/fed_environment.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::testing::feed_environment({bytes, count});
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "environment_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

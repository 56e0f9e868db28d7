#include <cstdio>
#include <cstdlib>

#include "models/instructions.hpp"
#include "models/pool_model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    using namespace tensorpool::testing;
    try {
        run_instructions({bytes, count});
    } catch (const Mismatch& mismatch) {
        std::fprintf(stderr, "pool_fuzz: %s\n", mismatch.what());
        std::abort();
    }
    return 0;
}

#include <cstdio>
#include <cstdlib>

#include "tools/serve/fed_server.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    using namespace tensorpool::command::serve::testing;
    try {
        feed_server({bytes, count});
    } catch (const Mismatch& mismatch) {
        std::fprintf(stderr, "serve_fuzz: %s\n", mismatch.what());
        std::abort();
    }
    return 0;
}

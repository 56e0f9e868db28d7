#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>

#include "rest/pieces/fed_piece.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
    try {
        tensorpool::stashing::testing::feed_piece(std::as_bytes(std::span(bytes, count)));
    } catch (const std::logic_error& error) {
        std::fprintf(stderr, "piece_fuzz: %s\n", error.what());
        std::abort();
    }
    return 0;
}

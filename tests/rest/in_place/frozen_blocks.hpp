#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <tensorpool/freeze.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "platform/memory/page_faults.hpp"
#include "rest/in_place/freezer.hpp"

namespace tensorpool::testing {

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t piece_bytes = stashing::PieceTools::piece_bytes;

/// Returns whether this process may freeze blocks here, at all or with system calls that work.
inline bool can_freeze(platform::FaultScope scope = platform::FaultScope::all) {
    const platform::FaultSource source = platform::open_fault_source(scope);
    if (source.file >= 0) platform::close_fault_source(source);
    return source.scope == scope;
}

/// A fixture whose tests are skipped where the system does not allow blocks to be frozen.
class Freezes : public ::testing::Test {
protected:
    void SetUp() override {
        if (!can_freeze()) {
            GTEST_SKIP() << "this process may not serve its page faults (userfaultfd(2)): run the "
                            "tests as root, or set vm.unprivileged_userfaultfd to 1";
        }
    }

    MemoryPool pool_;
};

/// Fills a block with bytes that compress a little, different in each piece.
inline void fill(const PooledAllocation& block, unsigned seed) {
    std::mt19937 random(seed);
    for (std::uint32_t& word : block.as<std::uint32_t>()) word = random() & 0x3FFF'FFFF;
}

inline std::vector<std::byte> content_of(const PooledAllocation& block) {
    const std::span<std::byte> bytes = block.as<std::byte>();
    return {bytes.begin(), bytes.end()};
}

}  // namespace tensorpool::testing

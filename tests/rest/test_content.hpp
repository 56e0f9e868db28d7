#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/stash.hpp>

namespace tensorpool::stashing {

using Bytes = std::vector<std::byte>;
using Generator = std::mt19937_64;

/// Returns bytes of one of several kinds: zeros, random, weights in float32, few symbols.
inline Bytes content(std::size_t bytes, Generator& generator) {
    Bytes all(bytes);
    const auto kind = generator() % 4;
    std::normal_distribution<float> value(0, 0.02F);
    for (std::size_t i = 0; kind != 0 && i < bytes; i += 4) {
        std::uint32_t word = 0;
        if (kind == 2) {
            const float weight = value(generator);
            std::memcpy(&word, &weight, sizeof word);
        } else {
            word = static_cast<std::uint32_t>(generator());
            if (kind == 3) word &= 0x03010301U;
        }
        std::memcpy(&all[i], &word, std::min(sizeof word, bytes - i));
    }
    return all;
}

inline PooledAllocation block_with(const Bytes& bytes, MemoryPool& pool,
                                   std::size_t alignment = 64) {
    PooledAllocation block(pool, bytes.size(), alignment);
    if (!bytes.empty()) std::memcpy(block.get(), bytes.data(), bytes.size());
    return block;
}

inline bool holds(const PooledAllocation& block, const Bytes& bytes) {
    return block.size() == bytes.size() &&
           (bytes.empty() || std::memcmp(block.get(), bytes.data(), bytes.size()) == 0);
}

/// Returns the message of the exception that `call` throws; "" if it throws none.
template <class Call>
std::string message_of(const Call& call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace tensorpool::stashing

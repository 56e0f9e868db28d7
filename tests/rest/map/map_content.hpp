#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <tensorpool/stashed_map.hpp>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {

using Map = StashedMap<int>;

inline constexpr std::size_t MiB = std::size_t{1} << 20;
inline constexpr std::size_t tensor_bytes = MiB;

template <class Pin>
bool holds(const Pin& tensor, const Bytes& bytes) {
    return tensor.size() == bytes.size() &&
           (bytes.empty() || std::memcmp(tensor.get(), bytes.data(), bytes.size()) == 0);
}

/// Changes a tensor that is pinned for reading, which programs must not do. If the change is lost,
/// the tensor was not encoded when it went to rest.
inline void overwrite(const StashedTensorView& tensor) {
    *static_cast<std::byte*>(const_cast<void*>(tensor.get())) ^= std::byte{0xFF};
}

/// Bytes that shrink to less than an eighth, and differ by number.
inline Bytes numbered(int number, std::size_t bytes = tensor_bytes) {
    Bytes all(bytes);
    for (std::size_t i = 0; i < bytes; i += 64) all[i] = static_cast<std::byte>(number);
    return all;
}

inline Bytes random(std::size_t bytes, unsigned seed) {
    Generator generator(seed);
    Bytes all(bytes);
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
        const std::uint64_t word = generator();
        std::memcpy(&all[i], &word, std::min(sizeof word, bytes - i));
    }
    return all;
}

/// Weights in bfloat16.
inline Bytes weights(std::size_t bytes, unsigned seed) {
    Generator generator(seed);
    std::normal_distribution<float> value(0, 0.02F);
    Bytes all(bytes);
    for (std::size_t i = 0; i + 2 <= bytes; i += 2) {
        const float weight = value(generator);
        std::memcpy(&all[i], reinterpret_cast<const std::byte*>(&weight) + 2, 2);
    }
    return all;
}

inline void put(Map& map, int key, const Bytes& bytes) {
    map.put(key, block_with(bytes, map.pool()));
}

/// A model of the map: bytes by key, guarded by a lock for each key that is held across a call of
/// the map and of the model.
struct Model {
    struct Slot {
        std::mutex mutex;
        std::optional<Bytes> bytes;
    };
    std::array<Slot, 12> slots;
};

inline void use_randomly(Map& map, Model& model, unsigned seed, int steps) {
    Generator generator(seed);
    for (int step = 0; step < steps; ++step) {
        const int key = static_cast<int>(generator() % model.slots.size());
        Model::Slot& slot = model.slots[static_cast<std::size_t>(key)];
        const std::lock_guard guard(slot.mutex);
        ASSERT_EQ(map.contains(key), slot.bytes.has_value());
        const unsigned action = generator() % 16;
        if (action < 4) {
            slot.bytes = content(1 + generator() % 400'000, generator);
            map.put(key, block_with(*slot.bytes, map.pool()));
        } else if (action == 4) {
            ASSERT_EQ(map.erase(key), slot.bytes.has_value());
            slot.bytes.reset();
        } else if (action == 5) {
            map.prefetch(key);
        } else if (action < 11) {
            const StashedTensorView tensor = map.read(key);
            ASSERT_EQ(static_cast<bool>(tensor), slot.bytes.has_value());
            if (!tensor) continue;
            ASSERT_TRUE(holds(tensor, *slot.bytes)) << key;
            const StashedTensorView second = map.read(key);
            ASSERT_EQ(second.get(), tensor.get());
        } else {
            StashedTensor tensor = map.get(key);
            ASSERT_EQ(static_cast<bool>(tensor), slot.bytes.has_value());
            if (!tensor) continue;
            ASSERT_TRUE(holds(tensor, *slot.bytes)) << key;
            const StashedTensor second = map.get(key);
            ASSERT_EQ(second.get(), tensor.get());
            const std::size_t at = generator() % tensor.size();
            tensor.as<std::byte>()[at] = (*slot.bytes)[at] = static_cast<std::byte>(generator());
        }
    }
}

inline void run_against_model(StashedMapOptions options) {
    // The largest tensor of the model.
    const std::size_t reserve = options.budget == nullptr ? 0 : 512 << 10;
    Map map(std::move(options));
    Model model;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
        threads.emplace_back([&, i] { use_randomly(map, model, i, 400); });
    for (std::thread& thread : threads) thread.join();
    for (int key = 0; key < static_cast<int>(model.slots.size()); ++key) {
        const auto& expected = model.slots[static_cast<std::size_t>(key)].bytes;
        const StashedTensor tensor = map.get(key);
        ASSERT_EQ(static_cast<bool>(tensor), expected.has_value());
        if (expected) {
            EXPECT_TRUE(holds(tensor, *expected));
        }
        map.erase(key);
    }
    const StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.entries, 0U);
    EXPECT_EQ(now.memory_bytes, 0U);
    EXPECT_EQ(now.stashed_bytes, 0U);
    EXPECT_EQ(now.compressed_bytes, 0U);
    EXPECT_EQ(now.spilled_bytes, 0U);
    // Some do not shrink.
    EXPECT_TRUE(now.failures == 0 || map.last_failure().ends_with("it stays in memory"))
        << map.last_failure();
    EXPECT_GT(now.restores, 0U);
    EXPECT_GE(now.stashes, now.restores);
    EXPECT_LE(map.pool().statistics().in_use_bytes, reserve);
}

}  // namespace tensorpool::stashing

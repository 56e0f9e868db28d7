#include <tensorpool/model_file.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tensorpool {
namespace {

template <class Element>
MetadataArray array_of(std::string_view type, const std::vector<Element>& elements) {
    return {type, elements.size(), std::as_bytes(std::span(elements))};
}

TEST(WholeNumbers, AreReadFromArraysOfAnyWidth) {
    using Values = std::vector<std::int64_t>;
    const auto read = [](std::string_view type, const auto& elements) {
        return whole_numbers(array_of(type, elements), 2);
    };
    EXPECT_EQ(read("u8", std::vector<std::uint8_t>{255, 1, 2}), (Values{255, 1}));
    EXPECT_EQ(read("i8", std::vector<std::int8_t>{-1}), Values{-1});
    EXPECT_EQ(read("u16", std::vector<std::uint16_t>{65535}), Values{65535});
    EXPECT_EQ(read("i16", std::vector<std::int16_t>{-2}), Values{-2});
    EXPECT_EQ(read("u64", std::vector<std::uint64_t>{~0ULL}), Values{INT64_MAX});
    EXPECT_EQ(read("i64", std::vector<std::int64_t>{INT64_MIN}), Values{INT64_MIN});
    EXPECT_EQ(read("f32", std::vector<float>{1}), std::nullopt);
    EXPECT_EQ(whole_numbers({"u32", 5, {}}, 5), Values{});
}

}  // namespace
}  // namespace tensorpool

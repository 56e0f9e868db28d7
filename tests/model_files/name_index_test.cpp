#include "models/model_contents.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tensorpool::files {
namespace {

using Names = std::vector<std::string>;
constexpr auto itself = [](const std::string& name) { return std::string_view(name); };

std::span<const std::string> all(const Names& names) {
    return names;
}

TEST(NameIndex, FindsEachNameAndNoOther) {
    Names names;
    for (int i = 0; i < 1000; ++i) names.push_back("blk." + std::to_string(i) + ".weight");
    NameIndex index;
    EXPECT_FALSE(index.build(all(names), itself));
    for (const std::string& name : names) EXPECT_EQ(index.find(all(names), itself, name), &name);
    for (const char* const other : {"", "blk.", "blk.1000.weight", "zzz"}) {
        EXPECT_EQ(index.find(all(names), itself, other), nullptr) << other;
    }
}

TEST(NameIndex, EmptyIndexFindsNothing) {
    const Names none;
    NameIndex index;
    EXPECT_EQ(index.find(all(none), itself, "a"), nullptr);
    EXPECT_FALSE(index.build(all(none), itself));
    EXPECT_EQ(index.find(all(none), itself, "a"), nullptr);
}

TEST(NameIndex, ReportsDuplicatesInOrder) {
    for (std::size_t first = 0; first < 6; ++first) {
        for (std::size_t second = first + 1; second < 6; ++second) {
            Names names = {"a", "b", "c", "d", "e", "f"};
            names[second] = names[first];
            NameIndex index;
            const auto duplicates = index.build(all(names), itself);
            ASSERT_TRUE(duplicates);
            EXPECT_EQ(duplicates->first, first);
            EXPECT_EQ(duplicates->second, second);
        }
    }
}

}  // namespace
}  // namespace tensorpool::files

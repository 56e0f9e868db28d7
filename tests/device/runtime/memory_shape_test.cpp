#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "device/runtime/runtime_core.hpp"

namespace tensorpool {
namespace {

std::string refusal_of(const MemoryShape& shape) {
    try {
        (void)bytes_of(shape);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(MemoryShape, NeedsTheProductOfItsExtents) {
    EXPECT_EQ(bytes_of({{2, 3, 5}, 4}), 120u);
    EXPECT_EQ(bytes_of({{}, 8}), 8u);
    EXPECT_EQ(bytes_of({{7, 0, 5}, 4}), 0u);
}

TEST(MemoryShape, InvalidShapeIsRejectedWithTheValueFound) {
    EXPECT_NE(refusal_of({{2, -3}, 4}).find("extent -3"), std::string::npos);
    EXPECT_NE(refusal_of({{2}, 0}).find("elements of 0 bytes"), std::string::npos);
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_NE(refusal_of({{most, most}, 4}).find("more bytes than"), std::string::npos);
}

TEST(MemoryShape, NegativeExtentIsRejectedAfterAnOverflow) {
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_NE(refusal_of({{most, most, -1}, 4}).find("extent -1"), std::string::npos);
}

TEST(MemoryShape, NeedsTheBytesOfItsType) {
    EXPECT_EQ(bytes_of({.extents = {2, 64}, .type = *find_ggml_type("Q4_0")}), 72u);
    EXPECT_EQ(bytes_of({{3}, 4, DataType::of<float>()}), 12u);
    EXPECT_NE(refusal_of({{3}, 8, DataType::of<float>()}).find("type float32"), std::string::npos);
    EXPECT_NE(refusal_of({{64}, 18, *find_ggml_type("Q4_0")}), "") << "a block is no element";
    EXPECT_NE(refusal_of({.extents = {2, 33}, .type = *find_ggml_type("Q4_0")}).find("33"),
              std::string::npos);
    EXPECT_NE(refusal_of({.extents = {-1}, .type = DataType::of<float>()}).find("extent -1"),
              std::string::npos);
}

TEST(MemoryShape, IsCheckedAgainstTheMemory) {
    EXPECT_NO_THROW(device::check_shape({{4, 4}, 4}, 64));
    EXPECT_NO_THROW(device::check_shape({}, 0));
    try {
        device::check_shape({{4, 5}, 4}, 64);
        ADD_FAILURE();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: a shape needs 80 bytes, expected at most the 64 of the memory");
    }
}

}  // namespace
}  // namespace tensorpool

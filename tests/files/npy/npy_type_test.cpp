#include "files/npy/npy_type.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace tensorpool::files {
namespace {

void expect_type(const char* descr, std::uint32_t bytes, int code) {
    const auto type = npy_type(descr);
    ASSERT_TRUE(type) << descr;
    EXPECT_EQ(type->name, descr);
    EXPECT_EQ(type->block_elements, 1U);
    EXPECT_EQ(type->block_bytes, bytes) << descr;
    EXPECT_EQ(type->dlpack_code, code) << descr;
}

TEST(NpyType, NumbersHaveTheirSizesAndCodes) {
    if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
    expect_type("|b1", 1, 6);
    expect_type("|i1", 1, 0);
    expect_type("<i2", 2, 0);
    expect_type("<i4", 4, 0);
    expect_type("<i8", 8, 0);
    expect_type("|u1", 1, 1);
    expect_type("<u8", 8, 1);
    expect_type("<f2", 2, 2);
    expect_type("<f4", 4, 2);
    expect_type("<f8", 8, 2);
    expect_type("<f16", 16, 2);
    expect_type("<c8", 8, 5);
    expect_type("<c16", 16, 5);
    expect_type("<c32", 32, 5);
}

TEST(NpyType, NumbersOfTheOtherByteOrderHaveNoCode) {
    if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
    expect_type(">f4", 4, -1);
    expect_type(">i8", 8, -1);
}

TEST(NpyType, TextsBytesAndTimesHaveNoCode) {
    expect_type("|S12", 12, -1);
    expect_type("|V2", 2, -1);
    expect_type("<U3", 12, -1);
    expect_type("<M8[ns]", 8, -1);
    expect_type("<m8[25s]", 8, -1);
    expect_type("<M8", 8, -1);
    expect_type("|V2147483647", 2147483647, -1);
    expect_type("<U536870911", 2147483644, -1);
}

TEST(NpyType, EverythingElseIsRejected) {
    for (const char* const descr :
         {"",        "<",    "<f",     "f4",           "=f4",         "<f3",
          "<f4 ",    "<f4x", "<i16",   "<u3",          "|O",          "|O8",
          "<b2",     "<c4",  "<M4",    "<M8[",         "<M8[]",       "<M8[ns]]",
          "<f4[ns]", "|S0",  "|V0",    "|V2147483648", "<U536870912", "|V99999999999999999999",
          "|S-1",    "<x4",  "float32"}) {
        EXPECT_FALSE(npy_type(descr)) << descr;
    }
}

}  // namespace
}  // namespace tensorpool::files

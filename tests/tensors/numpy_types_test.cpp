#include <tensorpool/data_type.hpp>

#include <gtest/gtest.h>

#include <bit>

namespace tensorpool {
namespace {

void expect_type(const char* descr, std::uint64_t bytes, DataCode code) {
    const auto type = find_numpy_type(descr);
    ASSERT_TRUE(type) << descr;
    EXPECT_EQ(type->block_elements(), 1U) << descr;
    EXPECT_EQ(type->block_bytes(), bytes) << descr;
    EXPECT_EQ(type->code, code) << descr;
}

TEST(NumpyTypes, NumbersHaveTheirSizesAndCodes) {
    if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
    expect_type("|b1", 1, DataCode::boolean);
    expect_type("|i1", 1, DataCode::signed_integer);
    expect_type("<i2", 2, DataCode::signed_integer);
    expect_type("<i4", 4, DataCode::signed_integer);
    expect_type("<i8", 8, DataCode::signed_integer);
    expect_type("|u1", 1, DataCode::unsigned_integer);
    expect_type("<u8", 8, DataCode::unsigned_integer);
    expect_type("<f2", 2, DataCode::floating);
    expect_type("<f4", 4, DataCode::floating);
    expect_type("<f8", 8, DataCode::floating);
    expect_type("<f16", 16, DataCode::floating);
    expect_type("<c8", 8, DataCode::complex);
    expect_type("<c16", 16, DataCode::complex);
    expect_type("<c32", 32, DataCode::complex);
}

TEST(NumpyTypes, NumbersOfTheOtherByteOrderAreOpaque) {
    if constexpr (std::endian::native != std::endian::little) GTEST_SKIP();
    expect_type(">f4", 4, DataCode::opaque);
    expect_type(">i8", 8, DataCode::opaque);
}

TEST(NumpyTypes, TextsBytesAndTimesAreOpaque) {
    expect_type("|S12", 12, DataCode::opaque);
    expect_type("|V2", 2, DataCode::opaque);
    expect_type("<U3", 12, DataCode::opaque);
    expect_type("<M8[ns]", 8, DataCode::opaque);
    expect_type("<m8[25s]", 8, DataCode::opaque);
    expect_type("<M8", 8, DataCode::opaque);
    expect_type("|V2147483647", 2147483647, DataCode::opaque);
    expect_type("<U536870911", 2147483644, DataCode::opaque);
}

TEST(NumpyTypes, EverythingElseIsRejected) {
    for (const char* const descr :
         {"",        "<",    "<f",     "f4",           "=f4",         "<f3",
          "<f4 ",    "<f4x", "<i16",   "<u3",          "|O",          "|O8",
          "<b2",     "<c4",  "<M4",    "<M8[",         "<M8[]",       "<M8[ns]]",
          "<f4[ns]", "|S0",  "|V0",    "|V2147483648", "<U536870912", "|V99999999999999999999",
          "|S-1",    "<x4",  "float32"}) {
        EXPECT_FALSE(find_numpy_type(descr)) << descr;
    }
}

TEST(NumpyTypes, CharactersOfTextsAreLanes) {
    EXPECT_EQ(find_numpy_type("|S12"), (DataType{.bits = 8, .lanes = 12}));
    EXPECT_EQ(find_numpy_type("<U3"), (DataType{.bits = 32, .lanes = 3}));
}

}  // namespace
}  // namespace tensorpool

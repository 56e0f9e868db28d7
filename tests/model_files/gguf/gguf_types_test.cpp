#include "models/gguf/gguf_metadata.hpp"

#include <gtest/gtest.h>

namespace tensorpool::files {
namespace {

TEST(GgufValueTypes, NamesAndBytes) {
    EXPECT_EQ(gguf_value_type(GgufValue::u8).name, "u8");
    EXPECT_EQ(gguf_value_type(GgufValue::boolean).name, "bool");
    EXPECT_EQ(gguf_value_type(GgufValue::string).bytes, 0U);
    EXPECT_EQ(gguf_value_type(GgufValue::array).name, "array");
    EXPECT_EQ(gguf_value_type(GgufValue::u64).bytes, 8U);
    EXPECT_EQ(gguf_value_type(GgufValue::f64).name, "f64");
}

}  // namespace
}  // namespace tensorpool::files

#include "models/model_contents.hpp"

#include <gtest/gtest.h>

#include <string>

#include <tensorpool/model_file.hpp>

#include "support/written_file.hpp"

namespace tensorpool::files {
namespace {

const std::string file_name = "model";

/// Expects an error with exactly this text.
template <class Read>
void expect_error(Read read, const std::string& text) {
    try {
        read();
        ADD_FAILURE() << "nothing was thrown; expected: " << text;
    } catch (const ModelFileError& error) {
        EXPECT_EQ(std::string(error.what()), "tensorpool: model: " + text);
    }
}

TEST(ByteReader, NumbersAreLittleEndian) {
    testing::WrittenFile file;
    file.append("\x01\x02\x03\x04\x05\x06\x07\x08");
    ByteReader in(file.view(), file_name);
    EXPECT_EQ(in.read<std::uint8_t>("a"), 1U);
    EXPECT_EQ(in.read<std::uint16_t>("b"), 0x0302U);
    EXPECT_EQ(in.position(), 3U);
    EXPECT_EQ(in.left(), 5U);
    EXPECT_EQ(in.read<std::uint32_t>("c"), 0x07060504U);
    EXPECT_EQ(in.read<std::int8_t>("d"), 8);
    EXPECT_EQ(in.left(), 0U);
}

TEST(ByteReader, NothingIsReadBeyondTheEnd) {
    testing::WrittenFile file;
    file.append("1234567");
    ByteReader in(file.view(), file_name);
    expect_error([&] { in.read<std::uint64_t>("count"); },
                 "count, at byte 0: found 7 B to the end, expected 8 B");
    EXPECT_EQ(in.take_text(7, "text"), "1234567");
    expect_error([&] { in.read<std::uint8_t>("byte"); },
                 "byte, at byte 7: found 0 B to the end, expected 1 B");
    expect_error([&] { in.take(~std::uint64_t{0}, "all"); },
                 "all, at byte 7: found 0 B to the end, expected 18446744073709551615 B");
    EXPECT_TRUE(in.take(0, "nothing").empty());
}

TEST(ByteReader, PartEndsAtItsEnd) {
    testing::WrittenFile file;
    file.append("1234567");
    ByteReader in(file.view(), 2, 4, file_name);
    EXPECT_EQ(in.take_text(2, "text"), "34");
    expect_error([&] { in.take(1, "more"); },
                 "more, at byte 4: found 0 B to the end, expected 1 B");
    in.enter("entry", 3);
    ByteReader part = in.part(5, 6);
    EXPECT_EQ(part.left(), 1U);
    expect_error([&] { part.take(2, "x"); },
                 "entry 3: x, at byte 5: found 1 B to the end, expected 2 B");
}

TEST(ByteReader, ErrorsNameTheOwnerOfAField) {
    testing::WrittenFile file;
    file.append_number(std::uint32_t{7});
    ByteReader in(file.view(), file_name);
    in.enter("tensor", 3);
    in.read<std::uint32_t>("type");
    expect_error([&] { in.fail_read("type", 7U, "6"); },
                 "tensor 3: type, at byte 0: found 7, expected 6");
    in.call("w\n");
    expect_error(
        [&] {
            in.fail({"dimension", 2}, 99, "found none");
        },
        "tensor 3 'w\\x0a': dimension 2, at byte 99: found none");
    in.enter("tensor", 4);
    expect_error([&] { in.fail("type", 0, "x"); }, "tensor 4: type, at byte 0: x");
    in.leave();
    expect_error([&] { in.fail("type", 0, "x"); }, "type, at byte 0: x");
}

TEST(ByteReader, CountsAreCheckedAgainstTheBytesLeft) {
    testing::WrittenFile file;
    file.append_number(std::uint64_t{3});
    file.append(std::string(11, 'x'));
    ByteReader in(file.view(), file_name);
    const auto count = in.read<std::uint64_t>("count");
    in.check_count(count, 3, "count");
    expect_error([&] { in.check_count(count, 4, "count"); },
                 "count, at byte 0: found 3, expected at most 2: each takes at least 4 B, and 11 B "
                 "are left");
}

}  // namespace
}  // namespace tensorpool::files

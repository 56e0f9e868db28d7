#include "models/npy/npy.hpp"

#include <gtest/gtest.h>

#include <string>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {
namespace {

const std::string name = "a.npy";

NpyHeader read(std::string_view text) {
    const ByteReader in({}, 0, 0, name);
    return read_npy_header(in, text, 100);
}

/// Expects an error at byte `at` of the header whose message contains `what`.
void expect_refused(std::string_view text, std::uint64_t at, const std::string& what) {
    try {
        read(text);
        ADD_FAILURE() << text << ": was read";
    } catch (const ModelFileError& error) {
        EXPECT_EQ(error.field(), "header");
        EXPECT_EQ(error.offset(), 100 + at) << error.what();
        EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
}

TEST(NpyHeader, ReadsTheHeaderThatNumPyWrites) {
    const std::string_view text =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }        \n";
    const NpyHeader header = read(text);
    EXPECT_EQ(header.descr, "<f4");
    EXPECT_EQ(header.descr.data(), text.data() + 11);
    EXPECT_EQ(header.descr_offset, 110U);
    EXPECT_FALSE(header.fortran_order);
    EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(header.shape_offset, 150U);
}

TEST(NpyHeader, AcceptsAnyKeyOrderAndSpaces) {
    const NpyHeader header =
        read("{ \"shape\" : ( 7 , ) ,'fortran_order':True,\t'descr' : \"|u1\"\n}");
    EXPECT_EQ(header.descr, "|u1");
    EXPECT_TRUE(header.fortran_order);
    EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{7}));
}

TEST(NpyHeader, AcceptsNumbersOfPython2) {
    const NpyHeader header = read("{'descr':'<f4','fortran_order':False,'shape':(3L, 4L)}");
    EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{3, 4}));
}

TEST(NpyHeader, RequiresEachKeyOnce) {
    expect_refused("{}", 2, "found its end, expected the key 'descr'");
    expect_refused("{'descr': '<f4'}", 16, "expected the key 'fortran_order'");
    expect_refused("{'descr': '<f4', 'fortran_order': True}", 39, "expected the key 'shape'");
    expect_refused("{'descr': '<f4', 'descr': '<f4'}", 17, "found the key 'descr', expected");
    expect_refused("{'other': 1}", 1, "found the key 'other', expected");
}

TEST(NpyHeader, StructuredTypesAreRefusedWithAHint) {
    const std::string expected = "found a structured type, expected a simple one";
    expect_refused("{'descr': [('x', '<f4'), ('y', '<i2')]}", 10, expected);
    expect_refused("{'descr': ('<f4', (2,))}", 10, expected);
}

TEST(NpyHeader, OtherLiteralsAreRefused) {
    expect_refused("", 0, "found its end, expected a dictionary");
    expect_refused("[1]", 0, "found '[1]', expected a dictionary");
    expect_refused("{descr: 1}", 1, "expected a string in quotes");
    expect_refused("{'descr", 2, "expected a closing quote");
    expect_refused("{'descr' '<f4'}", 9, "expected ':'");
    expect_refused("{'descr': '<f4' 'shape': ()}", 16, "expected ',' or '}'");
    expect_refused("{'fortran_order': 0}", 18, "found '0}', expected True or False");
    expect_refused("{'shape': 3}", 10, "expected '(', where a shape begins");
    expect_refused("{'shape': (3)}", 12, "found ')}', expected ','");
    expect_refused("{'shape': (3, 4", 15, "found its end, expected ',' or ')'");
    expect_refused("{'shape': (-3,)}", 11, "found '-3,)}', expected a number");
    expect_refused("{'shape': (1 + 1,)}", 13, "expected ','");
    expect_refused("{'shape': (18446744073709551616,)}", 11, "below 2^64");
    expect_refused("{'shape': (),", 13, "expected a string in quotes");
    expect_refused("{'descr':'<f4','fortran_order':True,'shape':()} x", 48,
                   "expected the header's end");
}

TEST(NpyHeader, AtMost64Dimensions) {
    std::string shape;
    for (int i = 0; i < 64; ++i) shape += "1,";
    const std::string begin = "{'descr':'<f4','fortran_order':False,'shape':(";
    EXPECT_EQ(read(begin + shape + ")}").shape.size(), 64U);
    expect_refused(begin + shape + "1)}", begin.size() + 128, "expected at most 64 dimensions");
}

}  // namespace
}  // namespace tensorpool::files

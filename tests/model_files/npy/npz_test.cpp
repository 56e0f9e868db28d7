#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::expect_refused;
using testing::npy_file;
using testing::npy_header;
using testing::read_model;
using testing::WrittenFile;
using testing::ZipWriter;

WrittenFile floats(char fill) {
    return npy_file(npy_header("<f4", "(2,)"), std::string(8, fill));
}

TEST(Npz, EachEntryIsATensorNamedWithoutExtension) {
    const WrittenFile file = ZipWriter()
                                 .add("layer/w.npy", floats('w'))
                                 .add("b.npy", npy_file(npy_header("|u1", "(3,)", true), "abc"))
                                 .write();
    const ModelFile model = read_model(file, "/models/m.npz");
    EXPECT_EQ(model.format(), ModelFormat::npz);
    EXPECT_EQ(model.version(), 0U);
    ASSERT_EQ(model.tensors().size(), 2U);
    const ModelTensor& first = model.tensors()[0];
    EXPECT_EQ(first.name, "layer/w");
    EXPECT_EQ(first.type.name, "<f4");
    EXPECT_EQ(file.bytes().substr(first.offset, first.bytes), "wwwwwwww");
    EXPECT_EQ(model.bytes(first).data(), file.view().data() + first.offset);
    const ModelTensor& second = model.tensors()[1];
    EXPECT_EQ(second.name, "b");
    EXPECT_TRUE(second.column_major);
    EXPECT_EQ(file.bytes().substr(second.offset, second.bytes), "abc");
    EXPECT_EQ(model.find("b"), &second);
    EXPECT_EQ(model.find("b.npy"), nullptr);
}

TEST(Npz, EmptyArchiveHasNoTensors) {
    const WrittenFile file = ZipWriter().write();
    const ModelFile model = read_model(file);
    EXPECT_EQ(model.format(), ModelFormat::npz);
    EXPECT_TRUE(model.tensors().empty());
}

TEST(Npz, EntryThatIsNotAnArrayIsRefused) {
    const WrittenFile pickle = ZipWriter().add({.name = "archive/data.pkl", .data = "x"}).write();
    expect_refused(pickle, "entry 0 'archive/data.pkl': name", 0, "it is not an archive of NumPy");
    const WrittenFile text = ZipWriter().add({.name = "a.npy", .data = "hello, world"}).write();
    const std::uint64_t data = text.field("entry 0 'a.npy': data").offset;
    expect_refused(text, "entry 0 'a.npy': magic", data, "found 'hello,', expected '\\x93NUMPY'");
}

TEST(Npz, ArrayMustFillItsEntry) {
    WrittenFile array = floats('a');
    array.append("x");
    const WrittenFile file = ZipWriter().add("a.npy", array).write();
    const std::uint64_t data = file.field("entry 0 'a.npy': data").offset;
    expect_refused(file, "entry 0 'a.npy': data", data + 128, "found 9 B to the end, expected 8 B");
}

TEST(Npz, NamesMustBeUnique) {
    const WrittenFile file =
        ZipWriter().add("a.npy", floats('1')).add("a.npy", floats('2')).write();
    const std::uint64_t at = file.field("entry 1 'a.npy': local signature").offset;
    expect_refused(file, "entry 1 'a.npy': name", at, "found the name of entry 0 again");
}

}  // namespace
}  // namespace tensorpool

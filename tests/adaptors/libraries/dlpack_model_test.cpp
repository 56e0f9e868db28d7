#include <tensorpool/dlpack_model.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "support/file_tree.hpp"
#include "support/gguf_writer.hpp"

namespace tensorpool {
namespace {

using testing::GgufWriter;
namespace ggml = testing::ggml;

std::vector<std::int64_t> shape_of(const DLManagedTensor* tensor) {
    return {tensor->dl_tensor.shape, tensor->dl_tensor.shape + tensor->dl_tensor.ndim};
}
std::vector<std::int64_t> strides_of(const DLManagedTensor* tensor) {
    return {tensor->dl_tensor.strides, tensor->dl_tensor.strides + tensor->dl_tensor.ndim};
}

template <class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "nothing was rejected";
}

/// A mapped model with one tensor of two rows of four floats and one tensor in blocks.
class DlpackModel : public ::testing::Test {
protected:
    DlpackModel() {
        GgufWriter writer;
        writer.add("general.architecture", "llama");
        writer.add_tensor("weight", ggml::f32, {4, 2});
        writer.add_tensor("blocks", ggml::q4_0, {32, 2});
        tree_.write("/model.gguf", writer.write().bytes());
        model_ = std::make_shared<ModelFile>(ModelFile::open(tree_.path("/model.gguf")));
    }

    testing::FileTree tree_;
    std::shared_ptr<ModelFile> model_;
};

TEST_F(DlpackModel, ViewsATensorInPlace) {
    const ModelTensor& tensor = *model_->find("weight");
    DLManagedTensor* const view = to_dlpack(model_, tensor);
    EXPECT_EQ(view->dl_tensor.data, model_->bytes(tensor).data());
    EXPECT_EQ(view->dl_tensor.device.device_type, kDLCPU);
    EXPECT_EQ(view->dl_tensor.dtype.code, kDLFloat);
    EXPECT_EQ(view->dl_tensor.dtype.bits, 32);
    EXPECT_EQ(view->dl_tensor.dtype.lanes, 1);
    EXPECT_EQ(view->dl_tensor.byte_offset, 0U);
    EXPECT_EQ(shape_of(view), (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(strides_of(view), (std::vector<std::int64_t>{4, 1}));
    view->deleter(view);
}

TEST_F(DlpackModel, KeepsTheModelUntilTheDeleterIsCalled) {
    const std::weak_ptr<ModelFile> watched = model_;
    const ModelTensor tensor = *model_->find("weight");
    DLManagedTensor* const first = to_dlpack(model_, tensor);
    DLManagedTensor* const second = bytes_to_dlpack(model_, tensor);
    model_.reset();
    first->deleter(first);
    ASSERT_FALSE(watched.expired());
    const auto* const bytes = static_cast<const unsigned char*>(second->dl_tensor.data);
    EXPECT_NO_FATAL_FAILURE((void)std::count(bytes, bytes + 32, 0));
    second->deleter(second);
    EXPECT_TRUE(watched.expired());
}

TEST_F(DlpackModel, CanBeImportedByDlpackTensor) {
    const DlpackTensor<const float> taken(to_dlpack(model_, *model_->find("weight")));
    EXPECT_EQ(taken.elements().size(), 8U);
    EXPECT_EQ(std::memcmp(taken.data(), model_->bytes(*model_->find("weight")).data(), 32), 0);
}

TEST_F(DlpackModel, ExportsBlocksAsBytesOnly) {
    const ModelTensor& tensor = *model_->find("blocks");
    EXPECT_FALSE(has_dlpack_view(*model_, tensor));
    EXPECT_EQ(error_of([&] { (void)to_dlpack(model_, tensor); }),
              "tensorpool: to_dlpack: tensor 'blocks': elements of type Q4_0, expected one that "
              "DLPack has");
    DLManagedTensor* const view = bytes_to_dlpack(model_, tensor);
    EXPECT_EQ(shape_of(view), (std::vector<std::int64_t>{2 * 18}));
    EXPECT_EQ(view->dl_tensor.dtype.code, kDLUInt);
    EXPECT_EQ(view->dl_tensor.dtype.bits, 8);
    EXPECT_EQ(view->dl_tensor.data, model_->bytes(tensor).data());
    view->deleter(view);
}

TEST_F(DlpackModel, RejectsANullModel) {
    const ModelTensor tensor;
    EXPECT_EQ(error_of([&] { (void)to_dlpack(std::shared_ptr<ModelFile>(), tensor); }),
              "tensorpool: to_dlpack: nullptr, expected a ModelFile");
    EXPECT_EQ(error_of([&] { (void)bytes_to_dlpack(nullptr, tensor); }),
              "tensorpool: to_dlpack: nullptr, expected a ModelFile");
}

/// Makes tensors that no file has: types, shapes and offsets of the test over the bytes of a real
/// one.
class DlpackOfAnyTensor : public DlpackModel {
protected:
    ModelTensor odd(std::int8_t code, std::uint32_t bytes, std::uint64_t offset_by) {
        ModelTensor tensor = *model_->find("weight");
        tensor.name = "odd";
        tensor.type = {.name = "TYPE",
                       .data = {.code = static_cast<DataCode>(code),
                                .bits = static_cast<std::uint16_t>(8 * bytes)}};
        tensor.shape = shape_;
        tensor.offset += offset_by;
        tensor.bytes = bytes;
        tensor.column_major = column_major_;
        return tensor;
    }
    DLManagedTensor* view(std::int8_t code, std::uint32_t bytes, std::uint64_t offset_by = 0) {
        return to_dlpack(model_, odd(code, bytes, offset_by));
    }
    std::vector<std::uint64_t> shape_ = {1};
    bool column_major_ = false;
};

TEST_F(DlpackOfAnyTensor, RejectsMisalignedElements) {
    EXPECT_EQ(
        error_of([&] { (void)view(2, 4, 2); }),
        "tensorpool: to_dlpack: tensor 'odd': its bytes begin 2 past a multiple of 4, expected "
        "a multiple: copy them");
    for (const auto& [code, bytes, offset] :
         {std::tuple{0, 1U, 3U}, std::tuple{5, 8U, 4U}, std::tuple{4, 2U, 2U}}) {
        DLManagedTensor* const taken = view(static_cast<std::int8_t>(code), bytes, offset);
        EXPECT_EQ(taken->dl_tensor.dtype.bits, 8 * bytes);
        taken->deleter(taken);
    }
    EXPECT_THROW((void)view(5, 8, 2), std::invalid_argument);  // a complex number of two floats
    EXPECT_TRUE(has_dlpack_view(*model_, odd(2, 4, 4)));
    EXPECT_FALSE(has_dlpack_view(*model_, odd(2, 4, 2)));
    EXPECT_TRUE(has_dlpack_view(*model_, odd(5, 8, 4)));
    EXPECT_FALSE(has_dlpack_view(*model_, odd(5, 8, 2)));
}

TEST_F(DlpackOfAnyTensor, StridesOfColumnMajorTensor) {
    shape_ = {2, 3, 4};
    column_major_ = true;
    DLManagedTensor* const taken = view(2, 4);
    EXPECT_EQ(shape_of(taken), (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(strides_of(taken), (std::vector<std::int64_t>{1, 2, 6}));
    taken->deleter(taken);
}

TEST_F(DlpackOfAnyTensor, ExportsAScalarAndATensorWithoutElements) {
    shape_ = {};
    DLManagedTensor* const scalar = view(2, 4);
    EXPECT_EQ(scalar->dl_tensor.ndim, 0);
    scalar->deleter(scalar);
    shape_ = {3, 0};
    DLManagedTensor* const empty = view(2, 4);
    EXPECT_EQ(shape_of(empty), (std::vector<std::int64_t>{3, 0}));
    empty->deleter(empty);
}

TEST_F(DlpackOfAnyTensor, RejectsAnExtentThatDlpackCannotExpress) {
    shape_ = {std::uint64_t{1} << 63, 0};
    EXPECT_EQ(error_of([&] { (void)view(2, 4); }),
              "tensorpool: to_dlpack: tensor 'odd': an extent of 9223372036854775808, expected at "
              "most 9223372036854775807");
}

}  // namespace
}  // namespace tensorpool

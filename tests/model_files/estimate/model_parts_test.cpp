#include <tensorpool/model_hyperparameters.hpp>

#include <gtest/gtest.h>

namespace tensorpool {
namespace {

using Files = std::vector<std::string>;

TEST(FilesOfAModel, AreFoundByTheNumbersInTheirNames) {
    EXPECT_EQ(files_of_model("/m/a-00002-of-00003.gguf"),
              (Files{"/m/a-00001-of-00003.gguf", "/m/a-00002-of-00003.gguf",
                     "/m/a-00003-of-00003.gguf"}));
    EXPECT_EQ(files_of_model("model-00001-of-00001.safetensors"),
              Files{"model-00001-of-00001.safetensors"});
}

TEST(FilesOfAModel, OfAnUnsplitModelAreOne) {
    for (const char* const name :
         {"a.gguf", "", ".", "-00001-of-00002", "a-0001-of-00002.gguf", "a-0000x-of-00002.gguf",
          "a-00001_of-00002.gguf", "a-00001-of-00000.gguf", "a_00001-of-00002.gguf"}) {
        EXPECT_EQ(files_of_model(name), Files{name});
    }
}

}  // namespace
}  // namespace tensorpool

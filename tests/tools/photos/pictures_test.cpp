#include "pictures.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tools/temporary_folder.hpp"

namespace tensorpool::photos {
namespace {

namespace fs = std::filesystem;

TEST(Pictures, AFolderGivesItsJpegFilesInOrderOfNames) {
    const TemporaryFolder folder;
    const fs::path b = folder.file("b.JPEG", ""), a = folder.file("a.jpg", "");
    folder.file("notes.txt", "");
    EXPECT_EQ(find_pictures({folder.path().string()}), (std::vector<fs::path>{a, b}));
}

TEST(Pictures, ANamedFileIsKeptWhateverItsType) {
    EXPECT_EQ(find_pictures({"/nowhere/notes.txt"}), (std::vector<fs::path>{"/nowhere/notes.txt"}));
}

TEST(Pictures, AFolderWithoutPicturesIsAnError) {
    const TemporaryFolder folder;
    EXPECT_THROW(find_pictures({folder.path().string()}), std::runtime_error);
}

TEST(Pictures, ResultsHaveUniqueNamesLikeTheirPictures) {
    const auto pictures = with_result_names({"x/a.jpeg", "y/a.jpg", "a-2.JPG", "b"});
    ASSERT_EQ(pictures.size(), 4U);
    EXPECT_EQ(pictures[0].result, "a.jpg");
    EXPECT_EQ(pictures[1].result, "a-2.jpg");
    EXPECT_EQ(pictures[2].result, "a-2-2.jpg");
    EXPECT_EQ(pictures[3].result, "b.jpg");
}

}  // namespace
}  // namespace tensorpool::photos

#include "jpeg.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <stdexcept>

#include "tools/temporary_folder.hpp"

namespace tensorpool::photos {
namespace {

cv::Mat gradient(int rows, int columns) {
    cv::Mat picture(rows, columns, CV_8UC3);
    for (int y = 0; y < rows; ++y) {
        for (int x = 0; x < columns; ++x) {
            picture.at<cv::Vec3b>(y, x) = {static_cast<uchar>(y), static_cast<uchar>(x), 100};
        }
    }
    return picture;
}

std::string reason_for(const std::filesystem::path& file) {
    try {
        read_jpeg(file);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Jpeg, AWrittenPictureIsReadBackNearlyEqual) {
    const TemporaryFolder folder;
    const cv::Mat picture = gradient(120, 200);
    write_jpeg(folder.path() / "a.jpg", picture);
    const cv::Mat read = read_jpeg(folder.path() / "a.jpg");
    ASSERT_EQ(read.size(), picture.size());
    EXPECT_EQ(read.type(), CV_8UC3);
    EXPECT_LT(cv::norm(read, picture, cv::NORM_INF), 12);
}

TEST(Jpeg, RegionsOfAPictureAreWrittenByTheirStride) {
    const TemporaryFolder folder;
    const cv::Mat region = gradient(120, 200)(cv::Rect(50, 20, 64, 48));
    write_jpeg(folder.path() / "a.jpg", region);
    EXPECT_LT(cv::norm(read_jpeg(folder.path() / "a.jpg"), region, cv::NORM_INF), 12);
}

TEST(Jpeg, OnePixelIsAPicture) {
    const TemporaryFolder folder;
    write_jpeg(folder.path() / "a.jpg", gradient(1, 1));
    EXPECT_EQ(read_jpeg(folder.path() / "a.jpg").total(), 1U);
}

TEST(Jpeg, AMissingFileIsReportedWithTheSystemsReason) {
    EXPECT_EQ(reason_for("/nowhere/a.jpg"), "cannot be opened: No such file or directory");
}

TEST(Jpeg, AFolderAnEmptyFileAndTextAreRejected) {
    const TemporaryFolder folder;
    EXPECT_EQ(reason_for(folder.path()), "cannot be read: Is a directory");
    EXPECT_EQ(reason_for(folder.file("empty.jpg", "")), "is empty");
    EXPECT_EQ(reason_for(folder.file("text.jpg", "no picture")).find("is not a JPEG picture: "),
              0U);
}

TEST(Jpeg, ATruncatedFileIsNotDecoded) {
    const TemporaryFolder folder;
    write_jpeg(folder.path() / "a.jpg", gradient(120, 200));
    const std::string whole = content_of(folder.path() / "a.jpg");
    const auto cut = folder.file("cut.jpg", whole.substr(0, whole.size() / 2));
    EXPECT_EQ(reason_for(cut).find("cannot be decoded: "), 0U);
}

TEST(Jpeg, WritingToAMissingFolderThrows) {
    EXPECT_THROW(write_jpeg("/nowhere/a.jpg", gradient(8, 8)), std::runtime_error);
}

TEST(Jpeg, AFullDiskIsReported) {
    EXPECT_THROW(write_jpeg("/dev/full", gradient(8, 8)), std::runtime_error);
}

}  // namespace
}  // namespace tensorpool::photos

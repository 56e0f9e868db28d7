/// Tests the program as a user runs it.

#include <sys/wait.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "jpeg.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::photos {
namespace {

struct Ended {
    int status;
    std::string text;  // standard output and error
};

/// Runs the program with `arguments`, which a shell parses.
Ended run_program(const std::string& arguments) {
    const std::string command = TENSORPOOL_PHOTOS_PROGRAM " " + arguments + " 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "r");
    Ended ended{-1, ""};
    for (int c = std::getc(pipe); c != EOF; c = std::getc(pipe)) ended.text += static_cast<char>(c);
    ended.status = WEXITSTATUS(pclose(pipe));
    return ended;
}

class Program : public testing::Test {
protected:
    Program() {
        cv::Mat picture(300, 400, CV_8UC3);
        cv::randu(picture, 0, 256);
        write_jpeg(folder_.path() / "good.jpg", picture);
    }
    Ended develop(const std::string& arguments) const {
        return run_program("--output " + (folder_.path() / "out").string() + " " + arguments);
    }
    std::string picture(const char* name) const { return (folder_.path() / name).string(); }

    TemporaryFolder folder_;
};

TEST_F(Program, DevelopsWithMallocAndThePoolAndComparesThem) {
    const Ended ended = develop("--rounds 1 " + picture("good.jpg"));
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_NE(ended.text.find("1 of 1 pictures, 0.1 megapixels"), std::string::npos) << ended.text;
    EXPECT_NE(ended.text.find("The results are identical"), std::string::npos);
    EXPECT_NE(ended.text.find("of the CPU time and "), std::string::npos);
    EXPECT_EQ(read_jpeg(folder_.path() / "out/tensorpool/good.jpg").cols, 400);
    EXPECT_EQ(read_jpeg(folder_.path() / "out/malloc/good.jpg").cols, 400);
}

TEST_F(Program, ReportsTheScratchOfEachOperatorInAContext) {
    const Ended ended = develop("--rounds 1 --threads 2 " + picture("good.jpg"));
    EXPECT_EQ(ended.status, 0) << ended.text;
    for (const char* part :
         {"\ndenoise                           1      4.1 MiB",
          "\ndisplay_light                     1      2.7 MiB",
          "tensorpool: arenas: 'context', growing\n", "\n  peak_used_bytes     3.4 MiB\n"}) {
        EXPECT_NE(ended.text.find(part), std::string::npos) << part << ended.text;
    }
    EXPECT_EQ(read_jpeg(folder_.path() / "out/context/good.jpg").cols, 400);
}

TEST_F(Program, FrugalOperatorsGiveTheSameResults) {
    const Ended ended = develop("--rounds 1 --frugal " + picture("good.jpg"));
    EXPECT_EQ(ended.status, 0) << ended.text;
    EXPECT_NE(ended.text.find("The results are identical"), std::string::npos);
    EXPECT_EQ(ended.text.find("--frugal"), std::string::npos) << ended.text;
}

TEST_F(Program, AnUnreadablePictureIsReportedOnceAndSkipped) {
    folder_.file("bad.jpg", "no picture");
    const Ended ended = develop("--rounds 2 " + folder_.path().string());
    EXPECT_EQ(ended.status, 1);
    const std::string complaint = picture("bad.jpg") + ": is not a JPEG picture: ";
    const std::size_t first = ended.text.find(complaint);
    ASSERT_NE(first, std::string::npos) << ended.text;
    EXPECT_EQ(ended.text.find(complaint, first + 1), std::string::npos) << ended.text;
    EXPECT_NE(ended.text.find("1 of 2 pictures"), std::string::npos) << ended.text;
}

TEST_F(Program, WrongUsageEndsWithStatusTwo) {
    const Ended ended = develop("--rounds none");
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.text.find("--rounds: \"none\" is not a number from 1 to 99"), std::string::npos)
        << ended.text;
}

TEST_F(Program, RefusesToOverwriteAPicture) {
    EXPECT_EQ(develop("--rounds 1 " + picture("good.jpg")).status, 0);
    const Ended ended = develop("--rounds 1 " + picture("out/malloc/good.jpg"));
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.text.find("choose another --output"), std::string::npos) << ended.text;
}

TEST_F(Program, AFolderThatCannotBeCreatedIsReported) {
    const Ended ended = run_program("--rounds 1 --output /proc/none " + picture("good.jpg"));
    EXPECT_EQ(ended.status, 1);
    EXPECT_NE(ended.text.find("/proc/none"), std::string::npos) << ended.text;
}

TEST_F(Program, HelpIsPrinted) {
    const Ended ended = run_program("--help");
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.text.find("usage: tensorpool_photos"), 0U);
}

}  // namespace
}  // namespace tensorpool::photos

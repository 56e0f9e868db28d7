#include "contest/worker_line.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tensorpool::photos {
namespace {

using Kind = WorkerLine::Kind;

TEST(WorkerLine, EachKindIsReadBackAsItWasWritten) {
    for (const WorkerLine& line :
         {WorkerLine{Kind::done, 3, 4'096'000, {}},
          WorkerLine{Kind::failed, 12, 0, "is empty: of bytes"},
          WorkerLine{Kind::preload, 0, 0, "/lib/a library.so"}, WorkerLine{Kind::preload, 0, 0, {}},
          WorkerLine{Kind::report, 0, 0, "  indented  line"}, WorkerLine{Kind::report, 0, 0, {}}}) {
        EXPECT_EQ(parse_worker_line(to_string(line)), line) << to_string(line);
    }
}

TEST(WorkerLine, AReasonOfSeveralLinesBecomesOne) {
    EXPECT_EQ(to_string({Kind::failed, 1, 0, "first\nsecond"}), "failed 1 first second");
}

TEST(WorkerLine, OtherLinesAreRejectedAndQuoted) {
    for (const char* line :
         {"", "hello", "done", "done 1", "done x 3", "done 1 3x", "failed", "failed -1 x"}) {
        try {
            parse_worker_line(line);
            ADD_FAILURE() << line;
        } catch (const std::runtime_error& error) {
            EXPECT_NE(std::string(error.what()).find('"' + std::string(line) + '"'),
                      std::string::npos);
        }
    }
}

}  // namespace
}  // namespace tensorpool::photos

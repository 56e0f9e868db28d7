
#include <gtest/gtest.h>

#include "formats/trace/trace_file.hpp"
#include "plan/buffers.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/trace/made_trace.hpp"

namespace tensorpool::command::planning {
namespace {

class ReadFile : public ::testing::Test {
protected:
    Buffers read(std::string_view content) { return read_file(folder_.file("a", content), {}); }
    photos::TemporaryFolder folder_;
};

TEST_F(ReadFile, DetectsTheFormat) {
    const std::vector<TensorLifetime> expected = {{1, 2, 3, 1}};
    EXPECT_EQ(read("lower,upper,size\n1,2,3").lifetimes, expected);
    EXPECT_EQ(read("\n [{\"lower\":1,\"upper\":2,\"size\":3}]").lifetimes, expected);
    EXPECT_EQ(read("{\"buffers\":[{\"lower\":1,\"upper\":2,\"size\":3}]}").lifetimes, expected);
}

TEST_F(ReadFile, ReadsATrace) {
    trace::testing::MadeTrace trace;
    trace.process().name(1, TraceSource::pool, "weights");
    trace.entries({trace::testing::thread_entry(70),
                   trace::testing::entry(TraceAction::allocate, 2000, 0x1000, 100)});
    const auto bytes = trace.end().bytes();
    const Buffers buffers = read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    EXPECT_EQ(buffers.lifetimes.at(0).bytes, 100u);
    EXPECT_EQ(buffers.clock, "calls");
}

TEST_F(ReadFile, ReadsAnRmmLog) {
    const Buffers buffers = read(
        "Thread,Time,Action,Pointer,Size,Stream\n"
        "7,10:00:00.000001,allocate,0x1000,100,0x0\n"
        "7,10:00:00.000002,free,0x1000,100,0x0\n");
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{0, 1, 100, 64}}));
}

TEST_F(ReadFile, RejectsADamagedTraceAsATrace) {
    EXPECT_THROW(read(std::string_view("TPTRACE\0nothing more", 20)), trace::TraceError);
}

TEST_F(ReadFile, NamesAMissingFile) {
    try {
        read_file("/nowhere/a.csv", {});
        FAIL();
    } catch (const CommandError& error) {
        EXPECT_NE(std::string(error.what()).find("/nowhere/a.csv"), std::string::npos);
    }
}

}  // namespace
}  // namespace tensorpool::command::planning

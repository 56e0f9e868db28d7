// A kind of record that a folder beside the library describes: what readers show of it that have
// never heard of it.

#include <gtest/gtest.h>

#include <unistd.h>

#include <string>

#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "lab/queue_table.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::lab {
namespace {

class Queue : public ::testing::Test {
protected:
    Queue() {
        record_ = statistics::segment().add<QueueRecord>("loader", [](QueueRecord& made) {
            made.state = 1;
            made.limit_bytes = 4096;
        });
        record_->waiting_bytes = 1024;
        record_->batches = 7;
    }
    ~Queue() override { statistics::segment().remove(*record_); }

    static ProcessSnapshot read() {
        return StatisticsReader::attach(static_cast<std::uint64_t>(getpid())).snapshot();
    }
    static bool has(const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    }

    QueueRecord* record_;
};

TEST_F(Queue, IsReadByItsDescription) {
    const ProcessSnapshot snapshot = read();
    ASSERT_EQ(snapshot.others.size(), 1U);
    EXPECT_EQ(snapshot.others[0].name, "queues");
    ASSERT_EQ(snapshot.others[0].records.size(), 1U);
    EXPECT_EQ(snapshot.others[0].records[0].name, "loader");
}

TEST_F(Queue, IsInJson) {
    const std::string id = std::to_string(record_->id);
    const std::string expected = R"("queues":[{"name":"loader","state":"closed","id":)" + id +
                                 R"(,"waiting_bytes":1024,"limit_bytes":4096,"batches":7,)" +
                                 R"("dropped":0}])";
    EXPECT_TRUE(has(to_json(read()), expected)) << to_json(read());
    EXPECT_TRUE(has(to_json(take_snapshot()), expected));
}

TEST_F(Queue, IsInMetrics) {
    const std::string metrics = to_prometheus(read());
    EXPECT_TRUE(has(metrics,
                    "# HELP lab_queue_batches_total Batches that came.\n"
                    "# TYPE lab_queue_batches_total counter\n"));
    EXPECT_TRUE(has(metrics, "queue=\"loader\"} 7\n")) << metrics;
}

TEST_F(Queue, IsInTables) {
    const std::string text = to_text(take_snapshot());
    EXPECT_TRUE(has(text, "tensorpool: queues of batches\n")) << text;
    EXPECT_TRUE(has(text, "closed")) << text;
    EXPECT_TRUE(has(text, "25.0 %")) << text;
}

TEST_F(Queue, ItsRulesApply) {
    record_->waiting_bytes = 1 << 20;
    EXPECT_EQ(read().others.at(0).records.at(0).values.at(queues::at("waiting_bytes")), 4096U);
}

}  // namespace
}  // namespace tensorpool::lab

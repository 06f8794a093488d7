#include "tenants/experiment.h"

#include <gmock/gmock.h>

#include "tenants/units.h"

namespace strobe::tenants {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Result<Experiment> read(const std::string& text) {
  return read_experiment(text, "/base");
}

std::string error_of(const std::string& text) {
  auto experiment = read(text);
  return experiment ? "" : experiment.error().message();
}

TEST(ExperimentTest, ChangesTakeThePlaceOfWhatTheFileSays) {
  const std::string text =
      "duration: 20s\ntenants: [{name: a, model: \"spin:1ms\", source: synthetic}]\n"
      "grid: {policy: [fifo, edf, priority], a.rate: [5, 10]}\n";
  auto experiment = read_experiment(text, "/base", {"duration=2s", "a.priority=3", "policy=edf", "a.rate=[5, 7]"});
  ASSERT_TRUE(experiment) << experiment.error().message();
  ASSERT_EQ(experiment->cells.size(), 2u);
  for (const Cell& cell : experiment->cells) {
    EXPECT_DOUBLE_EQ(cell.spec.duration_s, 2);
    EXPECT_EQ(cell.spec.policy, Policy::kEdf);
    EXPECT_EQ(cell.spec.tenants[0].priority, 3);
    EXPECT_THAT(cell.settings, HasSubstr("duration: 2s"));  // by which it is known to be done
  }
  EXPECT_DOUBLE_EQ(experiment->cells[1].spec.tenants[0].rate_hz, 7);
  const auto error = [&](const std::string& change) {
    auto wrong = read_experiment(text, "/base", {change});
    return wrong ? "" : wrong.error().message();
  };
  EXPECT_EQ(error("duration"), "'duration': expected KEY=VALUE");
  EXPECT_THAT(error("b.rate=3"), HasSubstr("no tenant 'b'"));
  EXPECT_EQ(error("durration=3s"), "'durration=3s': the file: no key 'durration'; did you mean duration?");
  EXPECT_THAT(error("duration=soon"), StartsWith("'duration=soon': "));
  EXPECT_THAT(error("policy=[fifo"), StartsWith("'policy=[fifo'"));
}

TEST(ExperimentTest, ReadsATenantWithEverything) {
  const auto experiment = read(R"(
name: study
policy: edf
isolation: processes
duration: 2min
warmup: 250ms
hang_timeout: 3s
seed: 7
defaults: {engine: torch, deadline: 50ms}
tenants:
  - name: lidar
    model: pointpillars
    source: {path: scenes, kind: nuscenes, scene: scene-0061, channels: [LIDAR_TOP], weather: rain, weather_rate: 25}
    rate: 12.5Hz
    offset: 5ms
    jitter: 200us
    priority: -2
    nice: 5
    cores: "1"
    threads: 2
    queue: 3
    batch: 6
    drop: newest
    memory_limit: 2GiB
    layers: true
    mps_share: 40
    mps_priority: below
    fault: {kind: hang, after: 9}
mps: true
)");
  ASSERT_TRUE(experiment) << experiment.error().message();
  ASSERT_EQ(experiment->cells.size(), 1u);
  const CellSpec& cell = experiment->cells[0].spec;
  EXPECT_EQ(cell.policy, Policy::kEdf);
  EXPECT_EQ(cell.isolation, Isolation::kProcesses);
  EXPECT_DOUBLE_EQ(cell.duration_s, 120);
  EXPECT_DOUBLE_EQ(cell.warmup_s, 0.25);
  EXPECT_DOUBLE_EQ(cell.hang_s, 3);
  EXPECT_EQ(cell.seed, 7u);
  const TenantSpec& tenant = cell.tenants.at(0);
  EXPECT_EQ(tenant.engine, "torch");
  EXPECT_DOUBLE_EQ(tenant.deadline_ms, 50);
  EXPECT_EQ(tenant.source.kind, SourceSpec::Kind::kNuscenes);
  EXPECT_EQ(tenant.source.path, "/base/scenes");
  EXPECT_EQ(tenant.source.weather, "rain");
  EXPECT_DOUBLE_EQ(tenant.source.weather_rate, 25);
  EXPECT_DOUBLE_EQ(tenant.rate_hz, 12.5);
  EXPECT_DOUBLE_EQ(tenant.jitter_ms, 0.2);
  EXPECT_EQ(tenant.priority, -2);
  EXPECT_EQ(tenant.nice, 5);
  EXPECT_EQ(tenant.batch, 6);
  EXPECT_EQ(tenant.drop, QueueDrop::kNewest);
  EXPECT_EQ(tenant.memory_limit, int64_t{2} << 30);
  EXPECT_EQ(tenant.fault.kind, FaultSpec::Kind::kHang);
  EXPECT_EQ(tenant.fault.after, 9);
  EXPECT_EQ(cell.mps, true);
  EXPECT_EQ(tenant.mps_share, 40);
  EXPECT_TRUE(tenant.mps_below);
}

constexpr const char* kTwo = "tenants: [{name: a, model: 'spin:1ms'}, {name: b, model: 'spin:2ms', source: x.jpg}]\n";

TEST(ExperimentTest, AGridIsEveryCombinationInOrder) {
  const auto experiment = read(std::string(kTwo) + R"(
repeat: 2
grid:
  policy: [fifo, edf]
  a.rate: [5, 10Hz]
)");
  ASSERT_TRUE(experiment) << experiment.error().message();
  EXPECT_THAT(experiment->axes, ElementsAre("policy", "a.rate"));
  ASSERT_EQ(experiment->cells.size(), 8u);
  EXPECT_EQ(experiment->cells[0].folder, "000_policy=fifo_a.rate=5_repeat=0");
  EXPECT_EQ(experiment->cells[1].folder, "001_policy=fifo_a.rate=10Hz_repeat=0");
  EXPECT_EQ(experiment->cells[2].folder, "002_policy=edf_a.rate=5_repeat=0");
  EXPECT_EQ(experiment->cells[7].folder, "007_policy=edf_a.rate=10Hz_repeat=1");
  EXPECT_DOUBLE_EQ(experiment->cells[1].spec.tenants[0].rate_hz, 10);
  EXPECT_DOUBLE_EQ(experiment->cells[1].spec.tenants[1].rate_hz, 10);
  EXPECT_EQ(experiment->cells[2].spec.policy, Policy::kEdf);
  EXPECT_NE(experiment->cells[0].spec.seed, experiment->cells[4].spec.seed);
  EXPECT_NE(experiment->cells[0].settings, experiment->cells[1].settings);
}

TEST(ExperimentTest, AnAxisMayHoldSettingsTogether) {
  const auto experiment = read(std::string(kTwo) + R"(
grid:
  priorities:
    - {name: first, a.priority: 1, b.priority: 0}
    - {name: second, a.priority: 0, b.priority: 1}
  all.source.weather: [none]
)");
  ASSERT_TRUE(experiment) << experiment.error().message();
  ASSERT_EQ(experiment->cells.size(), 2u);
  EXPECT_EQ(experiment->cells[1].folder, "001_priorities=second_all.source.weather=none");
  EXPECT_EQ(experiment->cells[1].spec.tenants[1].priority, 1);
  EXPECT_EQ(experiment->cells[1].spec.tenants[1].source.path, "/base/x.jpg");
}

// One cell's settings do not leak into the next one.
TEST(ExperimentTest, CellsAreIndependent) {
  const auto experiment = read(std::string(kTwo) + "grid: {x: [{name: p, a.queue: 7}, {name: q, b.queue: 9}]}");
  ASSERT_TRUE(experiment) << experiment.error().message();
  EXPECT_EQ(experiment->cells[0].spec.tenants[0].queue, 7);
  EXPECT_EQ(experiment->cells[1].spec.tenants[0].queue, 1);
  EXPECT_EQ(experiment->cells[1].spec.tenants[1].queue, 9);
}

TEST(ExperimentTest, ErrorsNameTheirPlace) {
  EXPECT_THAT(error_of("tenants: []"), HasSubstr("at least one tenant"));
  EXPECT_EQ(error_of("tenants:\n  - {name: a, model: m, rte: 5}"), "2:25: tenant 0: no key 'rte'; did you mean rate?");
  EXPECT_THAT(error_of("tenants:\n  - {name: a, model: m, rate: fast}"),
              StartsWith("2:31: \"fast\": expected frames a second"));
  EXPECT_THAT(error_of("tenants:\n  - {name: a, model: m, rate: -3}"), StartsWith("2:31: "));
  EXPECT_THAT(error_of("tenants:\n  - {name: a/b, model: m}"), HasSubstr("expected letters"));
  EXPECT_THAT(error_of("tenants:\n  - {name: a, model: m}\n  - {name: a, model: m}"), HasSubstr("a second tenant"));
  EXPECT_THAT(error_of("tenants:\n  - {name: a}"), HasSubstr("tenant a: no model"));
  EXPECT_THAT(error_of("policy: fastest\ntenants:\n  - {name: a, model: m}"), StartsWith("1:9: there is no policy"));
  EXPECT_THAT(error_of("tenants: [{name: a, model: m, deadline: 100}]"), HasSubstr("a time with its unit"));
  EXPECT_THAT(error_of("tenants: [{name: a"), StartsWith("1:"));
  EXPECT_THAT(error_of("- a"), HasSubstr("expected keys and values"));
  EXPECT_THAT(error_of(""), HasSubstr("expected keys and values"));
  EXPECT_THAT(error_of("tenants: [{name: a, model: m}]\nduration: 0s"), HasSubstr("more than 0"));
  EXPECT_THAT(error_of("mps: true\ntenants: [{name: a, model: m}]"),
              StartsWith("1:6: mps: expected isolation: processes"));
  EXPECT_THAT(error_of("tenants: [{name: a, model: m, mps_share: 0}]"),
              StartsWith("1:42: expected a whole number from 1 to 100"));
}

TEST(ExperimentTest, WordsThatPlantNothingAreRefused) {
  EXPECT_THAT(error_of("tenants: [{name: a, model: m, fault: {kind: crash}}]"), HasSubstr("expected after: FRAMES"));
  EXPECT_EQ(error_of("tenants: [{name: a, model: m, fault: {kind: none}}]"), "");
  EXPECT_THAT(error_of("duration: 1s\nwarmup: 1s\ntenants: [{name: a, model: m, offset: 2s}]"),
              HasSubstr("tenant a: offset: expected less than warmup and duration together (2 s)"));
  EXPECT_EQ(error_of("duration: 1s\nwarmup: 1s\ntenants: [{name: a, model: m, offset: 1900ms}]"), "");
  for (const char* name : {"all", "defaults"})
    EXPECT_THAT(error_of(std::string("tenants: [{model: m, name: ") + name + "}]"), StartsWith("1:28: name '"));
}

TEST(ExperimentTest, AKeyOfASourceThatIsOneWordLeavesItsKind) {
  const auto source = [](const std::string& written) {
    const auto experiment =
        read("tenants: [{name: a, model: m, source: '" + written + "'}]\ngrid: {a.source.reliable: [true]}");
    return experiment ? experiment->cells[0].spec.tenants[0].source : SourceSpec{};
  };
  EXPECT_EQ(source("synthetic").kind, SourceSpec::Kind::kSynthetic);
  EXPECT_EQ(source("ros2:/LIDAR_TOP").kind, SourceSpec::Kind::kRos2);
  EXPECT_EQ(source("ros2:/LIDAR_TOP").path, "/LIDAR_TOP");
  EXPECT_TRUE(source("ros2:/LIDAR_TOP").reliable);
  EXPECT_EQ(source("x.mcap").path, "/base/x.mcap");
}

TEST(ExperimentTest, FilesOfModelsStartAtTheFilesFolder) {
  const auto model = [](const std::string& written) {
    const auto experiment = read("tenants: [{name: a, model: '" + written + "'}]");
    return experiment ? experiment->cells[0].spec.tenants[0].model : experiment.error().message();
  };
  EXPECT_EQ(model("net.onnx"), "/base/net.onnx");
  EXPECT_EQ(model("nets/small"), "/base/nets/small");
  EXPECT_EQ(model("/elsewhere/net.cfg"), "/elsewhere/net.cfg");
  ::setenv("STROBE_TEST_ROOT", "/elsewhere", 1);
  EXPECT_EQ(model("${STROBE_TEST_ROOT}/net.json"), "/elsewhere/net.json");
  EXPECT_EQ(model("resnet18"), "resnet18");
  EXPECT_EQ(model("spin:5ms/3"), "spin:5ms/3");
}

TEST(ExperimentTest, ErrorsOfTheGridNameTheirPlace) {
  EXPECT_EQ(error_of(std::string(kTwo) + "grid:\n  zebra.rate: [5]"),
            "3:16: grid: zebra.rate: no tenant 'zebra'; there are: a, b, all");
  EXPECT_THAT(error_of(std::string(kTwo) + "grid:\n  policy: fifo"), HasSubstr("expected a list of values"));
  EXPECT_THAT(error_of(std::string(kTwo) + "grid:\n  policy: [fifo, fifo]"), HasSubstr("stands here twice"));
  EXPECT_THAT(error_of(std::string(kTwo) + "grid:\n  policy: [fifo, quick]"),
              StartsWith("3:18: cell policy=quick: there is no policy \"quick\""));
  EXPECT_THAT(error_of(std::string(kTwo) + "grid:\n  a.quue: [1]"),
              StartsWith("3:3: cell a.quue=1: tenant 0: no key 'quue'"));
  EXPECT_THAT(error_of(std::string(kTwo) + "repeat: 10000\ngrid:\n  a.queue: [1, 2]"),
              HasSubstr("more than 10000 cells"));
}

TEST(ExperimentTest, PathsMayComeFromTheEnvironment) {
  ::setenv("STROBE_TEST_ROOT", "/elsewhere", 1);
  const auto experiment = read("tenants: [{name: a, model: m, source: '${STROBE_TEST_ROOT}/x.jpg'}]");
  ASSERT_TRUE(experiment);
  EXPECT_EQ(experiment->cells[0].spec.tenants[0].source.path, "/elsewhere/x.jpg");
}

TEST(UnitsTest, Durations) {
  EXPECT_DOUBLE_EQ(*parse_duration("250us"), 250e-6);
  EXPECT_DOUBLE_EQ(*parse_duration("1.5 s"), 1.5);
  EXPECT_DOUBLE_EQ(*parse_duration("2min"), 120);
  for (const char* wrong : {"", "5", "ms", "-5ms", "5 mss", "nans", "infs", "1e999s", "1e300s", "9000h"})
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(UnitsTest, RatesAndMemory) {
  EXPECT_DOUBLE_EQ(*parse_rate("10"), 10);
  EXPECT_DOUBLE_EQ(*parse_rate("29.97fps"), 29.97);
  for (const char* wrong : {"0", "-1", "x", "1e6", "10 hz"}) EXPECT_FALSE(parse_rate(wrong)) << wrong;
  EXPECT_EQ(*parse_bytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(*parse_bytes("5MB"), 5'000'000);
  for (const char* wrong : {"-1", "1e30", "2 gigs"}) EXPECT_FALSE(parse_bytes(wrong)) << wrong;
}

}  // namespace
}  // namespace strobe::tenants

// Devices that are cut into instances (MIG), with the stand-in for NVML.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "base/gpu_words.h"
#include "gpu/device_watch.h"
#include "gpu/fake.h"
#include "gpu/nvml.h"
#include "gpu/nvml_reader.h"
#include "gpu/sampler.h"
#include "gpu/timeline/gpu_timeline.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"

namespace strobe::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Environment;
using testing::fake_library;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace words = gpu_words;

constexpr double kGib = 1 << 30;
constexpr const char* kFirst = "MIG-31000000-0000-0000-0000-000000000000";
constexpr const char* kLast = "MIG-31000000-0000-0000-0000-000000000002";

class MigTest : public ::testing::Test {
 protected:
  MigTest() {
    auto nvml = Nvml::open();
    if (!nvml) std::abort();
    nvml_.emplace(std::move(*nvml));
  }
  Nvml::Devices devices(const char* visible) const {
    auto found = nvml_->devices(visible, nullptr);
    EXPECT_TRUE(found) << found.error().to_string();
    return found ? std::move(*found) : Nvml::Devices{};
  }
  Environment library_{"STROBE_NVML_LIBRARY", fake_library("libstrobe_fake_nvml.so")}, split_{"FAKE_NVML_MIG", "1"};
  std::optional<Nvml> nvml_;
};

// "GI.CI" of the instances of a device.
std::vector<std::string> places(const NvmlDevice& device) {
  std::vector<std::string> all;
  for (const NvmlInstance& one : device.instances)
    all.push_back(std::to_string(one.gpu_instance) + "." + std::to_string(one.compute_instance));
  return all;
}

TEST_F(MigTest, InstancesAreThoseThatTheEnvironmentLeaves) {
  const Environment two("FAKE_NVML_DEVICES", "2");
  const Nvml::Devices all = devices(nullptr);
  ASSERT_EQ(all.list.size(), 2U);
  EXPECT_THAT(places(all.list[0]), ElementsAre("1.0", "1.1", "2.0"));
  EXPECT_THAT(places(all.list[1]), IsEmpty());
  EXPECT_EQ(all.list[0].instances[2].uuid, kLast);
  EXPECT_EQ(all.list[0].instances[0].name, "Fake GPU 9000 MIG 1g.10gb");
  EXPECT_EQ(all.list[0].instances[0].processors, 16U);
  EXPECT_EQ(all.list[0].instances[0].memory_bytes, uint64_t{10} << 30);
  const auto seen = [&](const std::string& visible) {
    const Nvml::Devices chosen = devices(visible.c_str());
    std::vector<std::string> list;
    for (const NvmlDevice& device : chosen.list) {
      list.push_back("GPU " + std::to_string(device.index));
      for (const std::string& place : places(device)) list.push_back(place);
    }
    return list;
  };
  EXPECT_THAT(seen("0"), ElementsAre("GPU 0", "1.0", "1.1", "2.0"));
  EXPECT_THAT(seen(kLast), ElementsAre("GPU 0", "2.0"));
  EXPECT_THAT(seen(std::string(kLast) + "," + kFirst + "," + kLast), ElementsAre("GPU 0", "2.0", "1.0"));
  EXPECT_THAT(seen("MIG-GPU-ab000000-0000-0000-0000-0000000000cd/1/1"), ElementsAre("GPU 0", "1.1"));
  EXPECT_THAT(seen(std::string(kFirst) + ",MIG-nothing,1"), ElementsAre("GPU 0", "1.0"));
  for (const char* none : {"MIG-nothing", "MIG-GPU-ab000000-0000-0000-0000-0000000000cd/9/0", "MIG-"})
    EXPECT_FALSE(nvml_->devices(none, nullptr)) << none;
}

TEST_F(MigTest, ADeviceWithoutInstancesIsTold) {
  const Environment none("FAKE_NVML_nvmlDeviceGetMigDeviceHandleByIndex", "6");
  const Nvml::Devices all = devices(nullptr);
  EXPECT_THAT(places(all.list.at(0)), IsEmpty());
  EXPECT_THAT(all.notes, Contains(HasSubstr("GPU 0 is in MIG mode and shows no instance")));
}

TEST_F(MigTest, IdsOfInstancesAreBytes) {
  const auto bytes = uuid_bytes(kLast);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes->data())[0], 0x31);
  EXPECT_EQ(reinterpret_cast<const uint8_t*>(bytes->data())[15], 2);
  for (const char* none : {"", "MIG-", "MIG-31", "MIG-GPU-ab000000-0000-0000-0000-0000000000cd/1/1",
                           "31000000-0000-0000-0000-000000000002"})
    EXPECT_FALSE(uuid_bytes(none)) << none;
}

class MigReaderTest : public MigTest {
 protected:
  // The values of two looks, so far apart that GPM tells something; those of processes as "name@pid".
  std::map<std::string, double> looked(NvmlReader& reader) {
    std::map<std::string, double> values;
    const auto put = [&values](int64_t, const char* name, double value, uint32_t pid) {
      values[name + (pid == 0 ? std::string() : "@" + std::to_string(pid))] = value;
    };
    EXPECT_TRUE(reader.read(put));
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    EXPECT_TRUE(reader.read(put));
    return values;
  }
  static std::string self(const std::string& name) { return name + "@" + std::to_string(::getpid()); }

  testing::Folder folder_;
  Environment held_{"FAKE_NVML_HELD", (folder_ / "held").string()};
  ProcessNumbers processes_{"/nowhere"};

 private:
  void SetUp() override {
    std::ofstream(folder_ / "held") << ::getpid() << " 2147483648 60\n";
    // Another namespace's processes are matched by the device that they hold.
    const std::string pid = std::to_string(::getpid());
    std::filesystem::create_directories(folder_ / pid / "fd");
    std::filesystem::create_symlink("/dev/nvidia0", folder_ / (pid + "/fd/5"));
    processes_ = ProcessNumbers(folder_.path());
  }
};

TEST_F(MigReaderTest, FiguresAreThoseOfEachInstance) {
  const Nvml::Devices all = devices(nullptr);
  NvmlReader reader(*nvml_, all.list.at(0), processes_);
  const auto values = looked(reader);
  // A GPU instance has one memory, whatever its compute instances.
  EXPECT_EQ(values.at("mig.1.memory_used_bytes"), 0.25 * kGib);
  EXPECT_EQ(values.at("mig.2.memory_used_bytes"), 2.5 * kGib);
  EXPECT_EQ(values.at("mig.1.gpm_sm_busy_percent"), 112);
  EXPECT_EQ(values.at("mig.2.gpm_sm_busy_percent"), 212);
  EXPECT_EQ(values.at("mig.2.pcie_sent_bytes_per_s"), 230 * 0x1p20);
  // Where a process is, and what it holds wherever it is.
  EXPECT_EQ(values.at(self("mig.2.0.process_memory_bytes")), 2 * kGib);
  EXPECT_EQ(values.count(self("mig.1.0.process_memory_bytes")), 0U);
  EXPECT_EQ(values.at(self("process_memory_bytes")), 2 * kGib);
  // Of the whole board there is power, of its use nothing.
  EXPECT_EQ(values.at(words::kPower), 250);
  EXPECT_EQ(values.count(words::kBusy), 0U);
  EXPECT_THAT(reader.not_measured().at(words::kBusy), HasSubstr("not supported"));
  EXPECT_THAT(reader.not_measured().at(words::kMemoryUsed), HasSubstr("no permission"));
  EXPECT_THAT(reader.not_measured().at("gpm"), HasSubstr("not supported"));
  EXPECT_EQ(reader.failed(), 0U);
}

TEST_F(MigReaderTest, OnlyTheVisibleInstancesAreRead) {
  const Nvml::Devices first = devices(kFirst);
  NvmlReader reader(*nvml_, first.list.at(0), processes_);
  const auto values = looked(reader);
  EXPECT_EQ(values.count("mig.1.memory_used_bytes"), 1U);
  EXPECT_EQ(values.count("mig.2.memory_used_bytes"), 0U);
  EXPECT_EQ(values.count("mig.2.gpm_sm_busy_percent"), 0U);
  EXPECT_EQ(values.count(self("process_memory_bytes")), 0U) << "it is in another instance";
}

TEST_F(MigReaderTest, WithTheRightTheWholeDeviceTellsItsMemoryToo) {
  const Environment root("FAKE_NVML_MIG_ROOT", "1");
  const Nvml::Devices all = devices(nullptr);
  NvmlReader reader(*nvml_, all.list.at(0), processes_);
  const auto values = looked(reader);
  EXPECT_EQ(values.at(words::kMemoryUsed), 7 * kGib);
  EXPECT_EQ(values.at(self("process_memory_bytes")), 2 * kGib) << "counted once";
}

TEST_F(MigReaderTest, AnInstanceThatIsTakenAwayIsToldAndTheOthersGoOn) {
  const Nvml::Devices all = devices(nullptr);
  NvmlReader reader(*nvml_, all.list.at(0), processes_);
  EXPECT_EQ(looked(reader).count("mig.2.memory_used_bytes"), 1U);
  const Environment gone("FAKE_NVML_MIG_GONE", "2");
  const auto values = looked(reader);
  EXPECT_EQ(values.count("mig.2.memory_used_bytes"), 0U);
  EXPECT_EQ(values.at("mig.1.memory_used_bytes"), 0.25 * kGib);
  EXPECT_THAT(reader.not_measured().at("mig.2.memory_used_bytes"), HasSubstr("not there any more"));
  EXPECT_THAT(reader.not_measured().at("mig.2.0.process_memory_bytes"), HasSubstr("not there any more"));
  EXPECT_EQ(reader.failed(), 0U);
}

TEST_F(MigTest, ThePartsAreCountersAndFactsOfTheTimeline) {
  const Environment visible("CUDA_VISIBLE_DEVICES", kLast);
  const testing::Folder folder;
  ASSERT_TRUE(record::start({.folder = folder.path()}));
  {
    const auto sampler = start_sampling_or_say_why({.folder = folder.path(), .period = std::chrono::milliseconds(10)});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_TRUE(record::stop());
  auto timeline = trace::import_spool(folder.path());
  ASSERT_TRUE(timeline);
  ASSERT_TRUE(add_gpu_logs(*timeline, folder.path()));
  EXPECT_EQ(timeline->facts.at("gpu.0.mig.2.0.uuid"), kLast);
  EXPECT_EQ(timeline->facts.at("gpu.0.mig.2.0.name"), "Fake GPU 9000 MIG 1g.10gb");
  EXPECT_EQ(timeline->facts.at("gpu.0.mig.2.0.sm_count"), "16");
  EXPECT_EQ(timeline->facts.at("gpu.0.mig.2.memory_bytes"), std::to_string(uint64_t{10} << 30));
  EXPECT_EQ(timeline->facts.count("gpu.0.mig.1.0.uuid"), 0U);
  EXPECT_THAT(timeline->facts.at("gpu.0.not_measured.busy_percent"), HasSubstr("not supported"));
  size_t memory = 0;
  for (size_t i = 0; i < timeline->counters.size(); ++i) {
    const auto name = timeline->strings[timeline->counters.name[i]];
    EXPECT_EQ(name.find("mig.1."), std::string::npos) << name;
    memory += name == "gpu.0.mig.2.memory_used_bytes" ? 1 : 0;
  }
  EXPECT_GE(memory, 2U);
}

TEST_F(MigReaderTest, AMeasurementIsBesideItsInstance) {
  const Environment cuda("STROBE_CUDA_LIBRARY", fake_library()), part("FAKE_CUDA_MIG", "1");
  std::ofstream(folder_ / "held") << "";
  const auto watch = DeviceWatch::open(0);
  ASSERT_TRUE(watch) << watch.error().to_string();
  std::ofstream(folder_ / "held") << ::getpid() << " 2147483648 60\n";
  EXPECT_EQ((*watch)->facts().at("uuid"), kLast);
  EXPECT_EQ((*watch)->facts().at("memory_mib"), "10240");
  EXPECT_EQ((*watch)->facts().at("sm_clock_mhz_max"), "1980");
  const DeviceMoment now = (*watch)->memory();
  EXPECT_EQ(now.total, static_cast<int64_t>(10 * kGib));
  EXPECT_EQ(now.used, static_cast<int64_t>(2.5 * kGib));
  EXPECT_EQ(now.own, static_cast<int64_t>(2 * kGib));
  (*watch)->sample();
  EXPECT_EQ((*watch)->use().clock_mhz, 1755);
  EXPECT_LT((*watch)->use().others_share, 0) << "NVML does not tell it of instances";
}

}  // namespace
}  // namespace strobe::gpu

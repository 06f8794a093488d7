// The plugin libstrobe_dds.so: Fast DDS (eProsima, 2.9) behind dds.h. The only file that knows it.
#include <fmt/format.h>

#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <map>
#include <mutex>

#include "sensors/dds_backend.h"

namespace strobe::sensors {

namespace {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using eprosima::fastrtps::types::ReturnCode_t;

// One LiDAR message (0.7 MB) overflows the library's defaults, at a price of 11 ms a message: the segment of shared
// memory that a writer's messages lie in, and the buffers of the sockets.
constexpr uint32_t kSharedMemory = 16U << 20;
constexpr uint32_t kSocketBuffer = 4U << 20;
constexpr size_t kHeader = 4;

// What travels through the type below.
struct Message {
  const uint8_t* data = nullptr;  // to be written
  size_t size = 0;
  std::vector<uint8_t> taken;  // read
};

// CDR bytes as they are: ROS 2's serializers have no part in this.
class CdrType : public dds::TopicDataType {
 public:
  explicit CdrType(const std::string& name) {
    setName(name.c_str());
    m_typeSize = 4096;  // a beginning: memory grows with the messages
    m_isGetKeyDefined = false;
    // ROS 2 up to Jazzy matches by name; a type object of ours would only be one to disagree with.
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    const auto& message = *static_cast<const Message*>(data);
    if (payload->max_size < message.size) return false;
    std::memcpy(payload->data, message.data, message.size);
    payload->length = static_cast<uint32_t>(message.size);
    payload->encapsulation = message.data[1] == 0 ? CDR_BE : CDR_LE;
    return true;
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    static_cast<Message*>(data)->taken.assign(payload->data, payload->data + payload->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] { return static_cast<uint32_t>(static_cast<const Message*>(data)->size); };
  }
  void* createData() override { return new Message; }
  void deleteData(void* data) override { delete static_cast<Message*>(data); }
  bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
};

eprosima::fastrtps::Duration_t duration(std::chrono::milliseconds limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  return {static_cast<int32_t>(seconds.count()),
          static_cast<uint32_t>(std::chrono::nanoseconds(limit - seconds).count())};
}

Error fault(const std::string& what) {
  return engine_error("DDS: " + what);
}

// How many others there are on a topic.
class Matched {
 public:
  void set(int count, int change) {
    const std::lock_guard lock(mutex_);
    count_ = count;
    if (change < 0) gone_ -= change;
    changed_.notify_all();
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  int gone() const {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  bool wait(int count, std::chrono::milliseconds limit) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return count_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  int count_ = 0, gone_ = 0;
};

template <typename Qos>
void apply(Qos& qos, const DdsTopic& topic) {
  const bool reliable = topic.qos.reliability == ros::Qos::Reliability::kReliable;
  const bool keeps = topic.qos.durability == ros::Qos::Durability::kTransientLocal;
  qos.reliability().kind = reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  qos.durability().kind = keeps ? dds::TRANSIENT_LOCAL_DURABILITY_QOS : dds::VOLATILE_DURABILITY_QOS;
  const auto depth = static_cast<int32_t>(std::min(topic.qos.depth, 1'000'000U));
  qos.history().kind = depth > 0 ? dds::KEEP_LAST_HISTORY_QOS : dds::KEEP_ALL_HISTORY_QOS;
  if (depth > 0) {
    qos.history().depth = depth;
    qos.resource_limits().max_samples_per_instance = std::max(400, depth);
    qos.resource_limits().max_samples = std::max(5000, depth);
  }
  qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();  // it needs types of a bounded size
  if (!topic.type_hash.empty()) {
    const std::string text = "typehash=" + topic.type_hash + ";";
    qos.user_data().setValue({text.begin(), text.end()});
  }
}

class Participant;

class Publisher : public DdsPublisher, private dds::DataWriterListener {
 public:
  explicit Publisher(std::shared_ptr<Participant> participant) : participant_(std::move(participant)) {}
  ~Publisher() override;
  Result<void> open(const DdsTopic& topic);

  Result<void> publish(std::span<const uint8_t> cdr) override {
    if (cdr.size() < kHeader) return usage_error(fmt::format("a message of {} bytes: expected CDR", cdr.size()));
    Message message;
    message.data = cdr.data(), message.size = cdr.size();
    if (!writer_->write(&message)) return fault(fmt::format("{}: the message was not taken", name_));
    return {};
  }
  int readers() const override { return matched_.count(); }
  int readers_gone() const override { return matched_.gone(); }
  bool wait_for_readers(int count, std::chrono::milliseconds limit) const override {
    return matched_.wait(count, limit);
  }
  bool wait_until_taken(std::chrono::milliseconds limit) override {
    return writer_->wait_for_acknowledgments(duration(limit)) == ReturnCode_t::RETCODE_OK;
  }

 private:
  void on_publication_matched(dds::DataWriter*, const dds::PublicationMatchedStatus& status) override {
    matched_.set(status.current_count, status.current_count_change);
  }

  std::shared_ptr<Participant> participant_;
  std::string name_;
  Matched matched_;
  dds::DataWriter* writer_ = nullptr;
};

class Subscriber : public DdsSubscriber, private dds::DataReaderListener {
 public:
  explicit Subscriber(std::shared_ptr<Participant> participant) : participant_(std::move(participant)) {}
  ~Subscriber() override;
  Result<void> open(const DdsTopic& topic);

  Result<bool> take(DdsSample& sample, std::chrono::milliseconds limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    Message message;
    message.taken = std::move(sample.cdr);
    for (;;) {
      dds::SampleInfo info;
      const ReturnCode_t code = reader_->take_next_sample(&message, &info);
      if (code == ReturnCode_t::RETCODE_OK && info.valid_data) {
        sample.cdr = std::move(message.taken);
        sample.source_time_ns = info.source_timestamp.to_ns();
        return true;
      }
      if (code != ReturnCode_t::RETCODE_OK && code != ReturnCode_t::RETCODE_NO_DATA)
        return fault(fmt::format("{}: reading failed with code {}", name_, code()));
      if (code == ReturnCode_t::RETCODE_OK) continue;  // news about a writer
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0 || !reader_->wait_for_unread_message(duration(left))) return false;
    }
  }
  int writers() const override { return matched_.count(); }
  bool wait_for_writers(int count, std::chrono::milliseconds limit) const override {
    return matched_.wait(count, limit);
  }

 private:
  void on_subscription_matched(dds::DataReader*, const dds::SubscriptionMatchedStatus& status) override {
    matched_.set(status.current_count, status.current_count_change);
  }

  std::shared_ptr<Participant> participant_;
  std::string name_;
  Matched matched_;
  dds::DataReader* reader_ = nullptr;
};

class Participant : public DdsParticipant, public std::enable_shared_from_this<Participant> {
 public:
  ~Participant() override {
    if (participant_ == nullptr) return;
    participant_->delete_contained_entities();
    dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
  }

  Result<void> open(const DdsSettings& settings) {
    dds::DomainParticipantQos qos;
    qos.name("strobe");
    qos.transport().use_builtin_transports = false;
    if (settings.transport != DdsTransport::kUdp) {
      auto shared = std::make_shared<eprosima::fastdds::rtps::SharedMemTransportDescriptor>();
      shared->segment_size(kSharedMemory);
      qos.transport().user_transports.push_back(shared);
    }
    // Other vendors, and containers with a /dev/shm of their own, know UDP only.
    if (settings.transport != DdsTransport::kSharedMemory) {
      auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
      udp->sendBufferSize = udp->receiveBufferSize = kSocketBuffer;
      if (settings.this_host_only) udp->interfaceWhiteList.emplace_back("127.0.0.1");
      qos.transport().user_transports.push_back(udp);
      qos.transport().send_socket_buffer_size = qos.transport().listen_socket_buffer_size = kSocketBuffer;
    }
    participant_ =
        dds::DomainParticipantFactory::get_instance()->create_participant(static_cast<uint32_t>(settings.domain), qos);
    if (participant_ == nullptr) return fault(fmt::format("domain {}: no transport could be opened", settings.domain));
    publisher_ = participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
    subscriber_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
    if (publisher_ == nullptr || subscriber_ == nullptr) return fault("no publisher or subscriber could be made");
    return {};
  }

  Result<std::unique_ptr<DdsPublisher>> create_publisher(const DdsTopic& topic) override {
    auto made = std::make_unique<Publisher>(shared_from_this());
    STROBE_TRY(made->open(topic));
    return std::unique_ptr<DdsPublisher>(std::move(made));
  }
  Result<std::unique_ptr<DdsSubscriber>> create_subscriber(const DdsTopic& topic) override {
    auto made = std::make_unique<Subscriber>(shared_from_this());
    STROBE_TRY(made->open(topic));
    return std::unique_ptr<DdsSubscriber>(std::move(made));
  }

  // A topic stands once in a participant, with one type; it stays as long as the participant.
  Result<dds::Topic*> topic(const DdsTopic& wanted) {
    STROBE_ASSIGN(const std::string name, dds_topic_name(wanted.name));
    STROBE_ASSIGN(const std::string type, dds_type_name(wanted.type));
    const std::lock_guard lock(mutex_);
    if (const auto it = topics_.find(name); it != topics_.end()) {
      if (it->second->get_type_name() == type) return it->second;
      return usage_error(
          fmt::format("topic {}: is of type {} already, not {}", wanted.name, it->second->get_type_name(), type));
    }
    if (participant_->find_type(type).empty()) {
      participant_->register_type(dds::TypeSupport(new CdrType(type)), type);
    }
    dds::Topic* made = participant_->create_topic(name, type, dds::TOPIC_QOS_DEFAULT);
    if (made == nullptr) return fault(fmt::format("topic {} could not be made", wanted.name));
    topics_[name] = made;
    return made;
  }

  dds::Publisher* writers() const { return publisher_; }
  dds::Subscriber* readers() const { return subscriber_; }

 private:
  dds::DomainParticipant* participant_ = nullptr;
  dds::Publisher* publisher_ = nullptr;
  dds::Subscriber* subscriber_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, dds::Topic*> topics_;
};

Result<void> Publisher::open(const DdsTopic& topic) {
  name_ = topic.name;
  STROBE_ASSIGN(dds::Topic* const made, participant_->topic(topic));
  dds::DataWriterQos qos = dds::DATAWRITER_QOS_DEFAULT;
  apply(qos, topic);
  writer_ = participant_->writers()->create_datawriter(made, qos, this, dds::StatusMask::publication_matched());
  if (writer_ == nullptr) return fault(fmt::format("{}: no writer could be made", name_));
  return {};
}

Publisher::~Publisher() {
  if (writer_ != nullptr) participant_->writers()->delete_datawriter(writer_);
}

Result<void> Subscriber::open(const DdsTopic& topic) {
  name_ = topic.name;
  STROBE_ASSIGN(dds::Topic* const made, participant_->topic(topic));
  dds::DataReaderQos qos = dds::DATAREADER_QOS_DEFAULT;
  apply(qos, topic);
  reader_ = participant_->readers()->create_datareader(made, qos, this, dds::StatusMask::subscription_matched());
  if (reader_ == nullptr) return fault(fmt::format("{}: no reader could be made", name_));
  return {};
}

Subscriber::~Subscriber() {
  if (reader_ != nullptr) participant_->readers()->delete_datareader(reader_);
}

Result<std::shared_ptr<DdsParticipant>> join(const DdsSettings& settings) {
  // The library would write to the terminal; what fails is in its return codes.
  dds::Log::ClearConsumers();
  try {
    auto participant = std::make_shared<Participant>();
    STROBE_TRY(participant->open(settings));
    return std::shared_ptr<DdsParticipant>(std::move(participant));
  } catch (const std::exception& thrown) {
    return fault(thrown.what());
  }
}

}  // namespace

}  // namespace strobe::sensors

extern "C" {
[[gnu::visibility("default")]] int strobe_dds_abi() {
  return strobe::sensors::kDdsAbi;
}
// The caller deletes the result.
[[gnu::visibility("default")]] strobe::Result<std::shared_ptr<strobe::sensors::DdsParticipant>>* strobe_dds_join(
    const strobe::sensors::DdsSettings* settings) {
  return new strobe::Result<std::shared_ptr<strobe::sensors::DdsParticipant>>(strobe::sensors::join(*settings));
}
}

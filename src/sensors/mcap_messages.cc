#include <algorithm>
#include <map>

#include "sensors/mcap_reader.h"

namespace strobe::sensors {

class McapMessages::Walk {
 public:
  Walk(const McapReader& reader, const McapQuery& query)
      : reader_(reader),
        query_(query),
        by_time_(query.order == McapQuery::Order::kLogTime),
        channels_(size_t{1} << 16),
        loader_(reader.bytes_, wanted_blocks(), reader.load_options()) {}

  Result<bool> next(McapMessageView& out) { return by_time_ ? next_by_time(out) : next_in_file(out); }
  std::shared_ptr<const void> pin() const { return current_; }
  const std::vector<std::string>& faults() const { return faults_.list(); }

 private:
  struct Channel {
    const McapChannel* channel = nullptr;
    const McapSchema* schema = nullptr;
    bool wanted = false;
    bool missed = false;  // a message of it came although there is no such channel
  };
  // A block of which messages are still to come, in order of time.
  struct Open {
    size_t block;
    McapLoaded loaded;
    std::vector<std::pair<uint64_t, uint64_t>> order;  // log time, offset of the record
    size_t at = 0;
    uint64_t time() const { return order[at].first; }
  };

  bool in_range(uint64_t time) const { return time >= query_.start && (!query_.end || time < *query_.end); }

  // Also fills channels_.
  std::vector<const McapBlock*> wanted_blocks() {
    const McapContents& contents = reader_.contents();
    for (const auto& [id, channel] : contents.channels) {
      Channel& entry = channels_[id];
      entry.channel = &channel;
      const auto schema = contents.schemas.find(channel.schema_id);
      if (schema != contents.schemas.end()) entry.schema = &schema->second;
      entry.wanted = query_.topics.empty() ||
                     std::find(query_.topics.begin(), query_.topics.end(), channel.topic) != query_.topics.end();
    }
    std::vector<const McapBlock*> blocks;
    for (const McapBlock& block : reader_.blocks_) {
      if (block.end_time < query_.start || (query_.end && block.start_time >= *query_.end)) continue;
      const auto asked = [&](uint16_t id) { return channels_[id].wanted || channels_[id].channel == nullptr; };
      if (block.knows_channels && std::none_of(block.channels.begin(), block.channels.end(), asked)) continue;
      blocks.push_back(&block);
    }
    if (by_time_)
      std::stable_sort(blocks.begin(), blocks.end(),
                       [](const McapBlock* a, const McapBlock* b) { return a->start_time < b->start_time; });
    return blocks;
  }

  void tell(std::string fault) { faults_.add(std::move(fault)); }

  // Whether the message is to be given out.
  bool take(const McapRecord& record, McapMessage& message) {
    if (record.opcode != McapOpcode::kMessage) {
      if (record.opcode == McapOpcode::kChannel) check_channel(record);
      return false;
    }
    if (!parse_message(record.content, message)) {
      tell("a Message record is shorter than its fields; skipped");
      return false;
    }
    Channel& channel = channels_[message.channel_id];
    if (channel.channel == nullptr && !channel.missed) {
      channel.missed = true;
      tell("messages of channel " + std::to_string(message.channel_id) + ", which is defined nowhere; skipped");
    }
    return channel.wanted && in_range(message.log_time);
  }

  // A channel may be repeated, but not changed.
  void check_channel(const McapRecord& record) {
    const auto channel = parse_channel(record.content);
    if (!channel || channels_[channel->id].channel == nullptr || *channels_[channel->id].channel == *channel) return;
    tell("channel " + std::to_string(channel->id) + " differs from its first definition, which holds");
  }

  void give(const McapMessage& message, McapMessageView& out) const {
    const Channel& channel = channels_[message.channel_id];
    out = {channel.channel, channel.schema, message.sequence, message.log_time, message.publish_time, message.data};
  }

  // The next block that could be read; false at the end.
  Result<bool> load(McapLoaded& loaded, size_t& block) {
    while (loaded_ < loader_.size()) {
      block = loaded_++;
      loaded = loader_.take();
      if (!loaded.fault) return true;
      if (reader_.options_.fail_on_fault) return std::move(*loaded.fault);
      tell(loaded.fault->to_string() + "; skipped");
    }
    return false;
  }

  void tell_cut(size_t block) {
    tell("chunk at byte " + std::to_string(loader_.block(block).offset) + ": its records are cut off");
  }

  Result<bool> next_in_file(McapMessageView& out) {
    McapRecord record;
    McapMessage message;
    for (;;) {
      McapCursor::Step step;
      while ((step = cursor_.next(record)) == McapCursor::Step::kRecord) {
        if (!take(record, message)) continue;
        give(message, out);
        return true;
      }
      if (step == McapCursor::Step::kCut) tell_cut(block_);
      McapLoaded loaded;
      auto more = load(loaded, block_);
      if (!more || !*more) {
        cursor_ = McapCursor({});
        return more;
      }
      cursor_ = McapCursor(loaded.records);
      current_ = std::move(loaded.owner);
    }
  }

  Result<bool> next_by_time(McapMessageView& out) {
    if (given_ != nullptr) close_or_sift();
    // A block that begins no later than what would be next may hold something that comes before it.
    while (loaded_ < loader_.size() && (open_.empty() || loader_.block(loaded_).start_time <= open_.front()->time())) {
      auto opened = std::make_unique<Open>();
      auto more = load(opened->loaded, opened->block);
      if (!more) return more;
      if (!*more) break;
      sort(*opened);
      if (opened->order.empty()) continue;
      open_.push_back(std::move(opened));
      std::push_heap(open_.begin(), open_.end(), later_);
    }
    if (open_.empty()) {
      current_.reset();
      return false;
    }
    given_ = open_.front().get();
    McapRecord record;
    McapMessage message;
    McapCursor cursor(given_->loaded.records, given_->order[given_->at].second);
    cursor.next(record);
    parse_message(record.content, message);
    give(message, out);
    if (current_ != given_->loaded.owner) current_ = given_->loaded.owner;
    return true;
  }

  // After a message was given out: the block's next one takes its place in the heap.
  void close_or_sift() {
    given_ = nullptr;
    Open& front = *open_.front();
    if (open_.size() == 1) {
      if (++front.at == front.order.size()) open_.clear();
      return;
    }
    std::pop_heap(open_.begin(), open_.end(), later_);
    if (++front.at == front.order.size())
      open_.pop_back();
    else
      std::push_heap(open_.begin(), open_.end(), later_);
  }

  void sort(Open& open) {
    McapCursor cursor(open.loaded.records);
    McapRecord record;
    McapMessage message;
    McapCursor::Step step;
    while ((step = cursor.next(record)) == McapCursor::Step::kRecord)
      if (take(record, message)) open.order.emplace_back(message.log_time, record.offset);
    if (step == McapCursor::Step::kCut) tell_cut(open.block);
    if (!std::is_sorted(open.order.begin(), open.order.end())) std::sort(open.order.begin(), open.order.end());
  }

  struct Later {
    const Walk* walk;
    bool operator()(const std::unique_ptr<Open>& a, const std::unique_ptr<Open>& b) const {
      if (a->time() != b->time()) return a->time() > b->time();
      return walk->loader_.block(a->block).offset > walk->loader_.block(b->block).offset;
    }
  };

  const McapReader& reader_;
  McapQuery query_;
  bool by_time_;
  std::vector<Channel> channels_;  // by id
  McapBlockLoader loader_;
  size_t loaded_ = 0;  // blocks taken from the loader
  McapFaults faults_;
  std::shared_ptr<const void> current_;  // owner of the bytes that were given out last
  // In the order of the file:
  McapCursor cursor_{{}};
  size_t block_ = 0;
  // By time, a heap:
  std::vector<std::unique_ptr<Open>> open_;
  Open* given_ = nullptr;
  Later later_{this};
};

McapMessages::McapMessages(std::unique_ptr<Walk> walk) : walk_(std::move(walk)) {}
McapMessages::McapMessages(McapMessages&&) noexcept = default;
McapMessages::~McapMessages() = default;
Result<bool> McapMessages::next(McapMessageView& message) {
  return walk_->next(message);
}
std::shared_ptr<const void> McapMessages::pin() const {
  return walk_->pin();
}
const std::vector<std::string>& McapMessages::faults() const {
  return walk_->faults();
}

McapMessages McapReader::messages(const McapQuery& query) const {
  return McapMessages(std::make_unique<McapMessages::Walk>(*this, query));
}

}  // namespace strobe::sensors

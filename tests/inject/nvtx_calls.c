/* Every function of NVTX's core, of core2, and of the payload and counter extensions, once, through NVIDIA's own
 * headers. tests/cli/record_test.py knows what must come out. Exits 1 where a return value is off. */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failed = 0;
static void expect(const char* what, long got, long wanted) {
  if (got == wanted) return;
  fprintf(stderr, "%s: %ld, expected %ld\n", what, got, wanted);
  failed = 1;
}

static nvtxEventAttributes_t event(const char* text) {
  nvtxEventAttributes_t made;
  memset(&made, 0, sizeof made);
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = NVTX_MESSAGE_TYPE_ASCII;
  made.message.ascii = text;
  return made;
}

static void core(void) {
  nvtxInitialize(NULL);
  expect("push A", nvtxRangePushA("push a"), 0);
  expect("push W", nvtxRangePushW(L"push w \u00e9"), 1);
  expect("pop", nvtxRangePop(), 1);
  expect("pop", nvtxRangePop(), 0);

  nvtxNameCategoryA(5, "category five");
  nvtxNameCategoryW(500, L"category five hundred");
  nvtxEventAttributes_t with = event("push ex");
  with.category = 5;
  with.colorType = NVTX_COLOR_ARGB;
  with.color = 0xFF112233;
  with.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  with.payload.ullValue = 18446744073709551615ULL;
  nvtxRangePushEx(&with);
  nvtxRangePop();
  with = event("signed 64");
  with.category = 500;
  with.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  with.payload.llValue = -64;
  nvtxMarkEx(&with);
  with = event("double");
  with.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  with.payload.dValue = 2.5;
  nvtxMarkEx(&with);
  with = event("unsigned 32");
  with.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  with.payload.uiValue = 4000000000U;
  nvtxMarkEx(&with);
  with = event("signed 32");
  with.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  with.payload.iValue = -32;
  nvtxMarkEx(&with);
  with = event("float");
  with.category = 9; /* has no name */
  with.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  with.payload.fValue = 0.5F;
  nvtxMarkEx(&with);
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark w");

  nvtxRangeId_t first = nvtxRangeStartA("start a");
  nvtxRangeId_t second = nvtxRangeStartW(L"start w");
  with = event("start ex");
  with.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  with.payload.iValue = 7;
  nvtxRangeId_t third = nvtxRangeStartEx(&with);
  expect("ids differ", first != second && second != third && first != third && first != 0, 1);
  nvtxRangeEnd(first);
  nvtxRangeEnd(third);
  nvtxRangeEnd(second);
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main thread");
}

static void* other_thread(void* tid) {
  *(uint32_t*)tid = (uint32_t)syscall(SYS_gettid);
  nvtxRangePushA("other thread");
  nvtxRangePop();
  return NULL;
}

static void core2(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxDomainHandle_t wide = nvtxDomainCreateW(L"wide library");
  nvtxDomainNameCategoryA(domain, 1, "loading");
  nvtxDomainNameCategoryW(domain, 2, L"saving");
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  nvtxStringHandle_t wide_text = nvtxDomainRegisterStringW(wide, L"registered wide");
  nvtxEventAttributes_t with = event(NULL);
  with.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  with.message.registered = text;
  with.category = 1;
  expect("domain push", nvtxDomainRangePushEx(domain, &with), 0);
  expect("domain push", nvtxDomainRangePushEx(domain, &with), 1);
  /* Each domain has a stack of its own. */
  with.message.registered = wide_text;
  with.category = 0;
  expect("push in another domain", nvtxDomainRangePushEx(wide, &with), 0);
  expect("pop across domains", nvtxDomainRangePop(domain), 1);
  expect("pop", nvtxDomainRangePop(wide), 0);
  expect("pop", nvtxDomainRangePop(domain), 0);
  with = event("domain mark");
  with.category = 2;
  nvtxDomainMarkEx(domain, &with);
  with = event("domain start");
  nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &with);
  nvtxDomainRangeEnd(domain, id);

  uint32_t tid = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, other_thread, &tid);
  pthread_join(thread, NULL);
  nvtxResourceAttributes_t resource;
  memset(&resource, 0, sizeof resource);
  resource.version = NVTX_VERSION;
  resource.size = sizeof resource;
  resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE;
  resource.identifier.ullValue = tid;
  resource.messageType = NVTX_MESSAGE_TYPE_ASCII;
  resource.message.ascii = "named by another";
  nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &resource);
  expect("resource", handle != NULL, 1);
  nvtxDomainResourceDestroy(handle);
  nvtxDomainDestroy(wide);
}

struct layer {
  int32_t batch;
  double loss;
  const char* label;
  uint16_t shape[3];
  uint32_t mode;
};

static void extensions(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("extended");
  expect("domain enabled", nvtxDomainIsEnabled(domain), 1);
  static const nvtxPayloadEnum_t modes[] = {{"train", 0, 0}, {"infer", 1, 0}};
  nvtxPayloadEnumAttr_t mode;
  memset(&mode, 0, sizeof mode);
  mode.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                   NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  mode.schemaId = 99; /* not in the mask: must be ignored */
  mode.name = "mode";
  mode.entries = modes;
  mode.numEntries = 2;
  mode.sizeOfEnum = 4;
  const uint64_t mode_id = nvtxPayloadEnumRegister(domain, &mode);
  const nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "batch", NULL, 0, offsetof(struct layer, batch), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss", NULL, 0, offsetof(struct layer, loss), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "label", NULL, 0, offsetof(struct layer, label), NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "shape", NULL, 3,
       offsetof(struct layer, shape), NULL, NULL},
      {0, mode_id, "mode", NULL, 0, offsetof(struct layer, mode), NULL, NULL},
  };
  nvtxPayloadSchemaAttr_t schema;
  memset(&schema, 0, sizeof schema);
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  schema.schemaId = 98; /* not in the mask */
  schema.name = "layer";
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 5;
  schema.payloadStaticSize = sizeof(struct layer);
  const uint64_t id = nvtxPayloadSchemaRegister(domain, &schema);
  const struct layer value = {3, 0.25, "conv", {1, 2, 3}, 1};
  nvtxPayloadData_t data = {id, sizeof value, &value};
  nvtxEventAttributes_t with = event("with schema");
  NVTX_PAYLOAD_EVTATTR_SET_DATA(with, &data, id, &value, sizeof value)
  nvtxDomainRangePushEx(domain, &with);
  nvtxDomainRangePop(domain);
  expect("push payload", nvtxRangePushPayload(domain, &data, 1), 0);
  expect("pop payload", nvtxRangePopPayload(domain, NULL, 0), 0);
  nvtxMarkPayload(domain, &data, 1);
  nvtxRangeEndPayload(domain, nvtxRangeStartPayload(domain, &data, 1), NULL, 0);

  nvtxCounterAttr_t counter;
  memset(&counter, 0, sizeof counter);
  counter.structSize = sizeof counter;
  counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
  counter.name = "queue";
  const uint64_t queue = nvtxCounterRegister(domain, &counter);
  nvtxCounterSampleInt64(domain, queue, 4);
  const int64_t six = 6;
  nvtxCounterSample(domain, queue, &six, sizeof six);
  counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE;
  counter.name = "rate";
  counter.scopeId = NVTX_SCOPE_CURRENT_SW_THREAD;
  nvtxCounterSampleFloat64(domain, nvtxCounterRegister(domain, &counter), 1.5);
}

int main(void) {
  core();
  core2();
  extensions();
  return failed;
}

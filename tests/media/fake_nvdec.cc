// A stand-in for NVIDIA's driver and NVDEC, as far as FFmpeg asks for them: built twice, under the names of the two
// libraries. It looks at no bits: the n-th picture that is decoded (from 0) is NV12 with luma 16 + 5 n + row % 4, Cb
// column % 64 and Cr 200, columns and rows being those of each plane.
//   FAKE_NVDEC_REFUSES=1   no stream is to its liking
//   FAKE_NVDEC_LOSES=N     the N-th picture and all later ones cannot be had
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_cuviddec.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr unsigned kPitch = 512;  // wider than any picture of the tests, as a device's is

struct Decoder {
  unsigned height = 0;
  int decoded = 0;
  std::map<int, std::vector<unsigned char>> surfaces;  // by number
  std::map<int, int> order;                            // of the surface: which picture it holds
};

int context;  // the address counts

int setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

}  // namespace

EXPORTED CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : static_cast<CUresult>(101);  // CUDA_ERROR_INVALID_DEVICE
}
EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 256;  // of FFmpeg's questions only the alignment of textures is a number
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxCreate_v2(CUcontext* made, unsigned, CUdevice) {
  *made = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxPushCurrent_v2(CUcontext) {
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxPopCurrent_v2(CUcontext* popped) {
  if (popped != nullptr) *popped = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxDestroy_v2(CUcontext) {
  return CUDA_SUCCESS;
}
// To the host; FFmpeg 7 copies within the device, too.
EXPORTED CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream) {
  if (copy->srcMemoryType != CU_MEMORYTYPE_DEVICE) return static_cast<CUresult>(1);  // CUDA_ERROR_INVALID_VALUE
  char* const to = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? static_cast<char*>(copy->dstHost)
                                                             : reinterpret_cast<char*>(copy->dstDevice);
  for (size_t row = 0; row < copy->Height; ++row) {
    std::memcpy(
        to + (copy->dstY + row) * copy->dstPitch + copy->dstXInBytes,
        reinterpret_cast<const char*>(copy->srcDevice) + (copy->srcY + row) * copy->srcPitch + copy->srcXInBytes,
        copy->WidthInBytes);
  }
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr* made, size_t bytes) {
  *made = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuMemFree_v2(CUdeviceptr memory) {
  std::free(reinterpret_cast<void*>(memory));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamSynchronize(CUstream) {
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorName(CUresult, const char** text) {
  *text = "CUDA_ERROR_OF_THE_STAND_IN";
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "the stand-in says no";
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuvidGetDecoderCaps(CUVIDDECODECAPS* caps) {
  caps->bIsSupported = setting("FAKE_NVDEC_REFUSES") == 0;
  caps->nOutputFormatMask = 1 << cudaVideoSurfaceFormat_NV12;
  caps->nMaxWidth = caps->nMaxHeight = 4096;
  caps->nMaxMBCount = 65536;
  caps->nMinWidth = caps->nMinHeight = 16;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuvidCreateDecoder(CUvideodecoder* made, CUVIDDECODECREATEINFO* wanted) {
  if (wanted->ulTargetWidth > kPitch || wanted->OutputFormat != cudaVideoSurfaceFormat_NV12) {
    return static_cast<CUresult>(1);
  }
  auto* decoder = new Decoder;
  decoder->height = static_cast<unsigned>(wanted->ulTargetHeight);
  *made = decoder;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuvidDestroyDecoder(CUvideodecoder decoder) {
  delete static_cast<Decoder*>(decoder);
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuvidDecodePicture(CUvideodecoder handle, CUVIDPICPARAMS* picture) {
  auto& decoder = *static_cast<Decoder*>(handle);
  if (picture->nBitstreamDataLen == 0 || picture->pBitstreamData == nullptr) return static_cast<CUresult>(1);
  const int number = decoder.decoded++;
  auto& surface = decoder.surfaces[picture->CurrPicIdx];
  surface.resize(size_t{kPitch} * decoder.height * 3 / 2);
  for (unsigned y = 0; y < decoder.height; ++y) {
    std::memset(&surface[size_t{y} * kPitch], static_cast<int>(16 + 5 * number + static_cast<int>(y % 4)), kPitch);
  }
  for (unsigned y = 0; y < decoder.height / 2; ++y) {
    for (unsigned x = 0; x < kPitch; ++x) {
      surface[(size_t{decoder.height} + y) * kPitch + x] = static_cast<unsigned char>(x % 2 == 0 ? x / 2 % 64 : 200);
    }
  }
  decoder.order[picture->CurrPicIdx] = number;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuvidMapVideoFrame64(CUvideodecoder handle, int number, unsigned long long* memory, unsigned* pitch,
                                       CUVIDPROCPARAMS*) {
  auto& decoder = *static_cast<Decoder*>(handle);
  const auto surface = decoder.surfaces.find(number);
  if (surface == decoder.surfaces.end()) return static_cast<CUresult>(1);
  const int lost = setting("FAKE_NVDEC_LOSES");
  if (lost > 0 && decoder.order[number] >= lost) return static_cast<CUresult>(999);
  *memory = reinterpret_cast<unsigned long long>(surface->second.data());
  *pitch = kPitch;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuvidUnmapVideoFrame64(CUvideodecoder, unsigned long long) {
  return CUDA_SUCCESS;
}

// FFmpeg takes the libraries only with all of these, and calls none of them for decoding.
#define NOT_CALLED(name)               \
  EXPORTED CUresult name() {           \
    return static_cast<CUresult>(801); \
  }
// The first four: of FFmpeg 7 and later.
NOT_CALLED(cuArrayCreate_v2)
NOT_CALLED(cuCtxGetCurrent)
NOT_CALLED(cuDriverGetVersion)
NOT_CALLED(cuStreamWaitEvent)
NOT_CALLED(cuDeviceGetName)
NOT_CALLED(cuDeviceComputeCapability)
NOT_CALLED(cuCtxSetLimit)
NOT_CALLED(cuMemAllocPitch_v2)
NOT_CALLED(cuMemAllocManaged)
NOT_CALLED(cuMemsetD8Async)
NOT_CALLED(cuMemcpy)
NOT_CALLED(cuMemcpyAsync)
NOT_CALLED(cuMemcpy2D_v2)
NOT_CALLED(cuMemcpyHtoD_v2)
NOT_CALLED(cuMemcpyHtoDAsync_v2)
NOT_CALLED(cuMemcpyDtoH_v2)
NOT_CALLED(cuMemcpyDtoHAsync_v2)
NOT_CALLED(cuMemcpyDtoD_v2)
NOT_CALLED(cuMemcpyDtoDAsync_v2)
NOT_CALLED(cuCtxGetDevice)
NOT_CALLED(cuDevicePrimaryCtxRetain)
NOT_CALLED(cuDevicePrimaryCtxRelease)
NOT_CALLED(cuDevicePrimaryCtxSetFlags)
NOT_CALLED(cuDevicePrimaryCtxGetState)
NOT_CALLED(cuDevicePrimaryCtxReset)
NOT_CALLED(cuStreamCreate)
NOT_CALLED(cuStreamQuery)
NOT_CALLED(cuStreamDestroy_v2)
NOT_CALLED(cuStreamAddCallback)
NOT_CALLED(cuEventCreate)
NOT_CALLED(cuEventDestroy_v2)
NOT_CALLED(cuEventSynchronize)
NOT_CALLED(cuEventQuery)
NOT_CALLED(cuEventRecord)
NOT_CALLED(cuLaunchKernel)
NOT_CALLED(cuLinkCreate)
NOT_CALLED(cuLinkAddData)
NOT_CALLED(cuLinkComplete)
NOT_CALLED(cuLinkDestroy)
NOT_CALLED(cuModuleLoadData)
NOT_CALLED(cuModuleUnload)
NOT_CALLED(cuModuleGetFunction)
NOT_CALLED(cuModuleGetGlobal)
NOT_CALLED(cuTexObjectCreate)
NOT_CALLED(cuTexObjectDestroy)
NOT_CALLED(cuGLGetDevices_v2)
NOT_CALLED(cuGraphicsGLRegisterImage)
NOT_CALLED(cuGraphicsUnregisterResource)
NOT_CALLED(cuGraphicsMapResources)
NOT_CALLED(cuGraphicsUnmapResources)
NOT_CALLED(cuGraphicsSubResourceGetMappedArray)
NOT_CALLED(cuGraphicsResourceGetMappedPointer_v2)
NOT_CALLED(cuArray3DCreate_v2)
NOT_CALLED(cuArrayDestroy)
NOT_CALLED(cuvidGetDecodeStatus)
NOT_CALLED(cuvidReconfigureDecoder)
NOT_CALLED(cuvidCtxLockCreate)
NOT_CALLED(cuvidCtxLockDestroy)
NOT_CALLED(cuvidCtxLock)
NOT_CALLED(cuvidCtxUnlock)
NOT_CALLED(cuvidCreateVideoSource)
NOT_CALLED(cuvidCreateVideoSourceW)
NOT_CALLED(cuvidDestroyVideoSource)
NOT_CALLED(cuvidSetVideoSourceState)
NOT_CALLED(cuvidGetVideoSourceState)
NOT_CALLED(cuvidGetSourceVideoFormat)
NOT_CALLED(cuvidGetSourceAudioFormat)
NOT_CALLED(cuvidCreateVideoParser)
NOT_CALLED(cuvidParseVideoData)
NOT_CALLED(cuvidDestroyVideoParser)

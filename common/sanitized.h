/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* IS_SANITIZED: this build has an address or thread sanitizer, which reserves terabytes of
 * addresses, and whose leak checker attaches to the process. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

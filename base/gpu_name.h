/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPU this process computes on: said by the device that opened it, read by probes, which know
 * no device. */
#ifndef BASE_GPU_NAME_H
#define BASE_GPU_NAME_H

const char *gpu_name(
    void); /* PCI bus id as NVML writes it, "0000:3b:00.0"; "" before any was opened */
void gpu_name_set(const char *pci_bus_id);

#endif

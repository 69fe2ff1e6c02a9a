export type { DeviceControl, ProgramControl } from './control.ts';
export { Device, type DeviceOptions, type DeviceStatistics } from './device.ts';
export type { Frame, Port } from './ports/port.ts';

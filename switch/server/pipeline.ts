import type { Scheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  type ForwardingPipelineConfig,
  type GetForwardingPipelineConfigRequest,
  GetForwardingPipelineConfigRequestResponseType as ResponseType,
  type SetForwardingPipelineConfigRequest,
} from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { DeviceControl, LoadableProgram } from '../control.ts';
import { carryOver } from './carry-over.ts';
import { checkProgramMatches } from './program-check.ts';
import { RpcError } from './rpc-error.ts';
import { type ProgramListener, RunningProgram } from './running-program.ts';

interface VerifiedConfig {
  readonly config: ForwardingPipelineConfig;
  readonly loadable: LoadableProgram;
  /** On the control of `loadable`: what is written to it before it is loaded is there when it runs. */
  readonly program: RunningProgram;
}

/** The forwarding pipeline config of one device (P4Runtime 1.5, sections "SetForwardingPipelineConfig RPC" and "GetForwardingPipelineConfig RPC"). */
export class Pipeline {
  private readonly device: DeviceControl;
  private readonly scheduler: Scheduler;
  private readonly listener: ProgramListener;
  private saved: VerifiedConfig | undefined;
  private committed: ForwardingPipelineConfig | undefined;
  private running: RunningProgram | undefined;

  constructor(device: DeviceControl, scheduler: Scheduler, listener: ProgramListener) {
    this.device = device;
    this.scheduler = scheduler;
    this.listener = listener;
  }

  stop(): void {
    this.running?.stop();
  }

  /** `undefined` before the first commit. */
  get program(): RunningProgram | undefined {
    return this.running;
  }

  /** What Write and Read work on: a saved config until it is committed. Throws FAILED_PRECONDITION without a pipeline. */
  requireProgram(): RunningProgram {
    const program = this.saved?.program ?? this.running;
    if (program === undefined) throw new RpcError('FAILED_PRECONDITION', 'No forwarding pipeline config is set');
    return program;
  }

  /** Throws RpcError, or DdfError for a program that cannot run; whatever ran goes on then. */
  set({ action, config }: SetForwardingPipelineConfigRequest): void {
    switch (action) {
      case ConfigAction.VERIFY:
        this.verify(config);
        return;
      case ConfigAction.VERIFY_AND_SAVE:
        this.saved = this.verify(config);
        return;
      case ConfigAction.VERIFY_AND_COMMIT:
        this.commit(this.verify(config));
        return;
      case ConfigAction.COMMIT:
        if (config !== undefined)
          throw new RpcError('INVALID_ARGUMENT', 'COMMIT takes the saved config, not one of its own');
        if (this.saved === undefined) throw new RpcError('NOT_FOUND', 'There is no saved config to commit');
        this.commit(this.saved);
        return;
      case ConfigAction.RECONCILE_AND_COMMIT:
        this.reconcile(this.verify(config));
        return;
      default:
        throw new RpcError('INVALID_ARGUMENT', `${action} is no action of SetForwardingPipelineConfig`);
    }
  }

  private verify(config: ForwardingPipelineConfig | undefined): VerifiedConfig {
    if (config === undefined) throw new RpcError('INVALID_ARGUMENT', 'The config is missing');
    if (config.p4info === undefined) throw new RpcError('INVALID_ARGUMENT', 'The config has no P4Info');
    if (config.p4DeviceConfig.length === 0)
      throw new RpcError('INVALID_ARGUMENT', 'The config has no p4_device_config: bmv2 JSON is expected');
    const info = new P4InfoIndex(config.p4info);
    const loadable = this.device.compile(config.p4DeviceConfig);
    checkProgramMatches(info, loadable.control);
    // Whatever could fail after the device has loaded the program fails here.
    const program = new RunningProgram(info, loadable.control, this.device.cpuPort, this.scheduler);
    return { config, loadable, program };
  }

  private reconcile(verified: VerifiedConfig): void {
    if (this.running !== undefined) carryOver(this.running, verified.program);
    this.commit(verified);
  }

  private commit({ config, loadable, program }: VerifiedConfig): void {
    this.running?.stop();
    this.device.load(loadable);
    this.running = program;
    this.committed = config;
    this.saved = undefined;
    program.start(this.listener);
  }

  /** `undefined` before the first commit. */
  get({ responseType }: GetForwardingPipelineConfigRequest): ForwardingPipelineConfig | undefined {
    const config = this.committed;
    if (config === undefined) return undefined;
    const { p4info, p4DeviceConfig, cookie } = config;
    const nothing = new Uint8Array(0);
    switch (responseType) {
      case ResponseType.ALL:
        return config;
      case ResponseType.COOKIE_ONLY:
        return { cookie, p4DeviceConfig: nothing };
      case ResponseType.P4INFO_AND_COOKIE:
        return { p4info, cookie, p4DeviceConfig: nothing };
      case ResponseType.DEVICE_CONFIG_AND_COOKIE:
        return { p4DeviceConfig, cookie };
      default:
        throw new DdfError('INVALID_REQUEST', `${responseType} is no response type`);
    }
  }
}

import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../base/logger.ts';
import { type ApiServer, startApi } from '../../../controller/api/server.ts';
import { registerCommands } from '../../../controller/cli/commands.ts';
import { recordingService } from '../api/recording-service.ts';
import { rolloutView, versionView } from '../api/samples.ts';

describe('ddf over REST', () => {
  let service: ReturnType<typeof recordingService>;
  let api: ApiServer;
  beforeEach(async () => {
    service = recordingService();
    api = await startApi({ service, address: '127.0.0.1:0', logger: createLogger('silent') });
  });
  afterEach(() => api.stop());

  async function ddf(...words: string[]): Promise<{ text: string; exitCode: number }> {
    const lines: string[] = [];
    let exitCode = 0;
    const program = new Command('ddf').exitOverride().configureOutput({ writeErr: (text) => lines.push(text) });
    registerCommands(program, { out: (line) => lines.push(line), fail: (code) => (exitCode = code) });
    for (const command of program.commands)
      command.exitOverride().configureOutput({ writeErr: (text) => lines.push(text) });
    await program.parseAsync([...words, '--url', api.url], { from: 'user' });
    return { text: lines.join('\n'), exitCode };
  }

  it('publishes a file by its absolute path', async () => {
    const { text } = await ddf('publish', 'model.safetensors', 'models/demo', '22', '--base', '21');
    expect(service.asked).toEqual([
      { object: 'models/demo', version: 22, base: 21, path: expect.stringMatching(/^\/.*model\.safetensors$/) },
    ]);
    expect(text).toContain('delta from 21: 190 kB on mn1');
  });

  it('shows a plan with its reasons', async () => {
    const { text } = await ddf('plan', 'models/demo', '22', '--servers', 'gpu01,gpu02,gpu03');
    expect(service.asked).toEqual([{ object: 'models/demo', version: 22, servers: ['gpu01', 'gpu02', 'gpu03'] }]);
    expect(text).toContain('the delta is 1.4 % of the object');
  });

  it('follows a rollout and fails when it does not become active', async () => {
    const { text, exitCode } = await ddf('rollout', 'models/demo', '22');
    expect(text.match(/0\/64 {2}on its way/g)).toHaveLength(3);
    expect(text).toContain('gpu03: the base is corrupt');
    expect(exitCode).toBe(1);
  });

  it('does not wait when told so', async () => {
    const { text, exitCode } = await ddf('rollout', 'models/demo', '22', '--detach', '--json');
    expect(JSON.parse(text)).toEqual(rolloutView);
    expect(exitCode).toBe(0);
  });

  it('lists groups of ordinary multicast', async () => {
    const { text } = await ddf('groups');
    expect(text.split('\n')[1]).toBe('239.1.2.3  yes         gpu01 gpu02');
  });

  it('traces packets through a switch, by the controller or by the switch itself', async () => {
    expect((await ddf('trace', 'leaf1', '--port', '9', '--next', '3')).text).toBe('packet on port 9');
    expect(service.asked).toEqual([{ name: 'leaf1', port: 9, count: 3 }]);
    // The REST API has nothing at the path that a switch serves.
    await expect(ddf('trace', 'leaf1', '--admin', api.url, '--frame', '00')).rejects.toThrow(/v1\/traces/);
  });

  it('lists versions and holders', async () => {
    expect(JSON.parse((await ddf('versions', 'models/demo', '--json')).text)).toEqual([versionView]);
    expect((await ddf('holders', 'models/demo', '22')).text).toMatch(/^HOLDER/);
    expect(service.asked).toEqual([{ object: 'models/demo', version: 22 }]);
  });

  it('passes the error of the controller on', async () => {
    await expect(ddf('versions', 'models/other')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      remedy: expect.any(String),
    });
    await expect(ddf('status', 'none')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it.each([
    [['plan', 'models/demo', 'new']],
    [['plan', 'models/demo']],
    [['rollout', 'models/demo', '22', '--deadline', '0']],
    [['rollout', 'models/demo', '22', '--fast']],
    [['publish', 'file', 'models/demo', '0']],
  ])('refuses %j before asking', async (words) => {
    await expect(ddf(...words)).rejects.toThrow();
    expect(service.asked).toEqual([]);
  });

  it('says what to do when no controller answers', async () => {
    const program = new Command('ddf').exitOverride();
    registerCommands(program, { out: () => {}, fail: () => {} });
    const lost = program.parseAsync(['status', '--url', 'http://127.0.0.1:1'], { from: 'user' });
    await expect(lost).rejects.toMatchObject({
      code: 'AGENT_UNREACHABLE',
      remedy: expect.stringContaining('npm start'),
    });
  });
});

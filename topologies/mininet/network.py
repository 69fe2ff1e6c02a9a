"""Builds what a plan says with Mininet's API, keeps it until it is told to stop, and takes it down again.

    network.py PLAN.json

Lines of JSON on file descriptor 3 are commands: {"command": "cli"} runs Mininet's command line on the terminal,
{"command": "stop"} or the end of the stream ends the program. Lines of JSON on file descriptor 4 are answers:
{"event": "ready", "pids": {node: pid}}, {"event": "cli ended"}, {"event": "stopped"}, {"event": "failed", "message": text}.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

from mininet.cli import CLI
from mininet.link import Link, TCIntf
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node, Switch

TAKE_DOWN_SECONDS = 25


class FabricSwitch(Switch):
    """A namespace with ports; the switch program is started in it by somebody else."""

    def start(self, controllers):
        pass


class ShapedIntf(TCIntf):
    """Shaped by htb at any rate; frames that wait are as many as the device's queue length says."""

    def bwCmds(self, bw=None, **_others):
        # The quantum only matters between classes, but the kernel warns of its default for one this fast.
        shaped = '%%s class add dev %%s parent 5:0 classid 5:1 htb rate %fMbit burst 15k quantum 15000' % bw
        return ['%s qdisc add dev %s root handle 5:0 htb default 1', shaped], ' parent 5:1 '


def run(node, command):
    out, err, code = node.pexec(command)
    if code != 0:
        raise RuntimeError('%s: %s: %s' % (node.name, ' '.join(command), (err or out).strip()))


def run_in_root(*command):
    subprocess.run(command, check=True, capture_output=True, text=True)


class Network:
    """What was built so far can be taken down at any time."""

    def __init__(self, plan):
        self.plan = plan
        self.net = None
        self.root = None
        self.nodes = {}

    @property
    def pids(self):
        return {name: node.pid for name, node in self.nodes.items()}

    def build(self):
        plan, nodes = self.plan, self.nodes
        self.net = net = Mininet(controller=None, build=False, waitConnected=False)
        self.root = root = Node('root', inNamespace=False)
        bridge = plan['management']['bridge']
        length = plan['management']['prefixLength']
        run_in_root('ip', 'link', 'add', 'name', bridge, 'type', 'bridge')
        run_in_root('ip', 'address', 'add', '%s/%d' % (plan['management']['address'], length), 'dev', bridge)
        run_in_root('ip', 'link', 'set', 'dev', bridge, 'up')
        for planned in plan['nodes']:
            name = planned['name']
            if planned['kind'] == 'switch':
                nodes[name] = net.addSwitch(
                    name, cls=FabricSwitch, inNamespace=True, dpid='%016x' % planned['deviceId'])
            else:
                nodes[name] = net.addHost(name, cls=Host, ip=planned['ip'] + '/32', mac=planned['mac'])
            for command in planned['before']:
                run(nodes[name], command)
        for link in plan['links']:
            a, b = link['a'], link['b']
            net.addLink(
                nodes[a['node']], nodes[b['node']], cls=Link, cls1=ShapedIntf, cls2=ShapedIntf,
                port1=a['port'], port2=b['port'], intfName1=a['device'], intfName2=b['device'])
        for planned in plan['nodes']:
            management = planned['management']
            Link(nodes[planned['name']], root, intfName1=management['device'], intfName2=management['rootDevice'])
            run_in_root('ip', 'link', 'set', 'dev', management['rootDevice'], 'master', bridge, 'up')
        net.build()
        for planned in plan['nodes']:
            node = nodes[planned['name']]
            for command in planned['after']:
                run(node, command)
            device = planned['management']['device']
            run(node, ['ip', 'address', 'add', '%s/%d' % (planned['management']['address'], length), 'dev', device])
            run(node, ['ip', 'link', 'set', 'dev', device, 'up'])
        # The queue lengths have to be there first: the shaper takes them over.
        for link in plan['links']:
            for end in (link['a'], link['b']):
                node = nodes[end['node']]
                result = node.intf(end['device']).config(bw=link['rateMbitPerSecond'], txo=False, rxo=False)
                problems = [text for text in (result or {}).get('tcoutputs', []) if text.strip()]
                if problems:
                    raise RuntimeError('%s: %s' % (node.name, problems[0].strip()))
        net.start()

    def take_down(self):
        """Namespaces go with their shells, and devices with the namespaces; the bridge is in nobody's."""

        def give_up(_signal, _frame):
            raise TimeoutError

        setLogLevel('error')
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(TAKE_DOWN_SECONDS)
        try:
            if self.net is not None:
                self.net.stop()
            if self.root is not None:
                self.root.terminate()
        except Exception:  # pylint: disable=broad-except
            # Mininet asks every shell to delete its devices, and fails or waits for ever for one that somebody has ended.
            for pid in self.pids.values():
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
        finally:
            signal.alarm(0)
            subprocess.run(
                ['ip', 'link', 'delete', 'dev', self.plan['management']['bridge']], capture_output=True, check=False)


def command_line(net):
    """Mininet's own hands what is typed ahead to the command that runs; lines of a pipe are for itself."""
    if sys.stdin.isatty():
        CLI(net)
        return
    with tempfile.NamedTemporaryFile('w', encoding='utf-8') as script:
        script.write(sys.stdin.read())
        script.flush()
        CLI(net, script=script.name)


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        plan = json.load(file)
    commands = os.fdopen(3, 'r', encoding='utf-8')
    answers = os.fdopen(4, 'w', encoding='utf-8')

    def answer(**fields):
        answers.write(json.dumps(fields) + '\n')
        answers.flush()

    def end(_signal, _frame):
        # Once: a second signal must not interrupt taking down.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    # The terminal's Ctrl-C is for the program that started this one, which stops things in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setLogLevel('error')
    network = Network(plan)
    try:
        # The signal may come at any point of the inner block, its end included: the outer one takes down in any case.
        try:
            network.build()
            answer(event='ready', pids=network.pids)
            for line in commands:
                command = json.loads(line)['command']
                if command == 'stop':
                    break
                if command == 'cli':
                    setLogLevel('info')
                    signal.signal(signal.SIGINT, signal.default_int_handler)
                    command_line(network.net)
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    setLogLevel('error')
                    answer(event='cli ended')
        except Exception as problem:  # pylint: disable=broad-except
            text = getattr(problem, 'stderr', None) or str(problem)
            answer(event='failed', message=text.strip())
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    finally:
        network.take_down()
        try:
            answer(event='stopped')
        except OSError:
            pass


if __name__ == '__main__':
    main()

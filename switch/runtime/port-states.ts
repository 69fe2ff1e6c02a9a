/** Which ports' links are down. Whatever was worked out from it is good as long as `version` stays the same. */
export class PortStates {
  version = 0;
  private readonly down = new Set<number>();

  isUp(port: number): boolean {
    return !this.down.has(port);
  }

  set(port: number, up: boolean): void {
    if (this.isUp(port) === up) return;
    if (up) this.down.delete(port);
    else this.down.add(port);
    this.version++;
  }
}

/** A map that counts how often somebody walks over it. */
export class CountingMap<K, V> extends Map<K, V> {
  walks = 0;

  override values(): MapIterator<V> {
    this.walks += 1;
    return super.values();
  }

  override keys(): MapIterator<K> {
    this.walks += 1;
    return super.keys();
  }

  override entries(): MapIterator<[K, V]> {
    this.walks += 1;
    return super.entries();
  }

  override [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }
}
